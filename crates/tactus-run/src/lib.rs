//! A run: plan and machine -> resolved plan -> scenarios -> events -> sinks. Touches the machine through its
//! environments and the door of `tactus-system`; knows no terminal.

mod engine;
mod interrupt;
mod nested;
mod partition;
pub mod plan;
mod probe_facts;
pub mod prove;
mod recorder;
mod resume;
mod scenario;
mod session;
mod settings;
#[cfg(test)]
mod tests;
mod vcpu_watch;

pub use engine::{RunError, Sink, run};
pub use interrupt::Interrupt;
pub use probe_facts::{ProbeFactsError, probe_facts};
pub use recorder::Recorder;
pub use resume::{keep_complete, resumed_writer};
