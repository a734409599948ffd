//! The rules of undoing, on systems that are not there.

mod actions;
mod files;
