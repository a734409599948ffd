//! `tactus cyclictest`, also under the name `cyclictest`: its options, and what it prints.

mod lines;
mod live;
mod options;
mod run;

pub use run::cyclictest;
