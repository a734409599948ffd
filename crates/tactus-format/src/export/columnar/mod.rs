//! Tables as Parquet files: written row by row, read column by column.

mod read;
mod write;

pub use read::{Found, Values, read};
pub use write::{Writer, fitting};
