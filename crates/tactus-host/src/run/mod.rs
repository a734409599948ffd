//! A run: resolved plan -> scenarios -> events -> bundle.

mod engine;
mod interrupt;
mod recorder;
mod scenario;
mod session;
#[cfg(test)]
mod tests;

pub use engine::{RunError, Sink, run};
pub use interrupt::Interrupt;
pub use recorder::Recorder;
