//! What a run says to whoever asks: can this machine hold my deadline? One sentence, what it rests on, and what would
//! help most.

mod chosen;
mod headline;
mod held;
mod next;
mod required;
mod tested;

pub use chosen::answer;
pub use headline::headline;
