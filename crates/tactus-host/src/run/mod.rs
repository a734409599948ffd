//! A run: resolved plan -> scenarios -> events -> bundle.

mod engine;
mod interrupt;
mod look;
mod nest;
mod partition;
mod recorder;
mod scenario;
mod session;
mod settings;
#[cfg(test)]
mod tests;
mod vcpus;

pub use engine::{RunError, Sink, run};
pub use interrupt::Interrupt;
pub use look::{LookError, look};
pub use recorder::Recorder;
