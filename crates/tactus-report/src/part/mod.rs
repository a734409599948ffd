//! Parts of a section: tables, lists, cards, figures. A section chooses its parts and knows no format; each
//! format writes each part in its way.

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
