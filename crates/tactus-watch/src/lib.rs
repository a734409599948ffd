//! Shows a run in progress. Events become a state ([`state`]), and the state becomes a screen ([`screen`]) or
//! metrics ([`metrics`]): all three are pure. [`terminal`] draws in a terminal and reads its keys, and
//! [`http`] answers requests for metrics. A run never waits for this crate: it sends its events through a
//! channel that drops.

pub mod bundle;
pub mod http;
pub mod metrics;
pub mod screen;
mod shared;
pub mod state;
pub mod terminal;
pub mod view;

pub use shared::Shared;
