//! A directory of bundles for a browser: their list, their reports, and runs that go on, which are followed by what they
//! write. It reads, and changes nothing: bundles are found by listing the one directory that it was given, never by a
//! path that somebody asks for.

mod answers;
mod catalogue;
mod follow;
mod gate;
mod live;
mod name;
mod pages;
mod site;

pub use follow::{SHARE, SILENCE, look};
pub use gate::{Gate, Token};
pub use site::Bundles;
