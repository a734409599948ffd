//! A run while it goes on. Events become a state ([`state`]), and the state becomes a screen ([`screen`]) or metrics
//! ([`metrics`]): all three are pure. Beside them stand what draws in a terminal and reads its keys ([`terminal`]), and
//! what answers who asks for metrics ([`http`]). Nothing in here is waited for by a run: whoever watches does so behind
//! a channel that drops.

pub mod bundle;
pub mod http;
pub mod metrics;
pub mod screen;
mod shared;
pub mod state;
pub mod terminal;
pub mod view;

pub use shared::Shared;
