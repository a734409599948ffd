//! `tactus oslat`, also under the name `oslat`: its options, and what it prints.

mod options;
mod run;

pub use run::oslat;
