//! A run: plan and machine -> resolved plan -> scenarios -> events -> sinks. Touches the machine through its
//! environments and the door of `tactus-system`; knows no terminal.

mod engine;
mod interrupt;
mod look;
mod nest;
mod partition;
pub mod plan;
pub mod prove;
mod recorder;
mod resume;
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
pub use resume::{keep_complete, resumed_writer};
