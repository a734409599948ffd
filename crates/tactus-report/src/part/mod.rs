//! What a section is made of: tables, lists, cards, figures. A section says what there is to say and knows
//! no format; every format writes each part in its own way.

mod answer;
mod card;
mod chapter;
mod grid;
mod kind;
mod list;
mod readings;
mod table;

pub use answer::{Answer, Next};
pub use card::Card;
pub use chapter::{Chapter, Chapters};
pub use grid::{Grid, GridLine, Group, LineKind, Stacked};
pub use kind::{Part, Reader};
pub use list::{Item, List, Mark, Tone};
pub use readings::{Finding, Reading, Readings};
pub use table::{Cell, Head, Length, Table};
