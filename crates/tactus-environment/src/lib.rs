//! Environments: places where code runs. An environment is anything that can start the probe and carry its byte
//! stream; measuring, loading and recording know nothing of its kind. Starts containers, virtual machines and
//! partitions by their own tools, through the door of `tactus-system`, and fetches kernels for guests.
//!
//! One file per kind in [`kind`], one word in its table.

mod attachment;
mod card;
mod console_file;
mod environment;
pub mod kernel;
pub mod kind;
pub mod network;
mod support;

pub use attachment::{Attachment, TakenCard};
pub use card::Card;
pub use console_file::ConsoleFile;
pub use environment::{
    BOOT_TIMEOUT, Environment, Layout, OptionError, OptionKey, Running, Setting, StartError, Stream, Usable,
};
pub use kind::{ENVIRONMENTS, attached, find};
pub use support::profiled;
