//! The way to a probe and back: frames on a stream of bytes, and rows of words in them.

mod card_end;
pub mod clock_page;
pub mod device_card;
mod frame;
mod link;
pub mod message;
pub mod row;
pub mod rpc;
pub mod self_test;

pub use frame::*;
