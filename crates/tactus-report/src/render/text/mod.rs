//! The report in a terminal.

mod grid;
mod page;
mod report;
mod screen;
mod table;

pub(crate) use page::Page;
pub use page::Style;
pub use report::{chapters, fitness, render, worth};
pub use screen::screen;
