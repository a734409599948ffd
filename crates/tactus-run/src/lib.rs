//! A run: plan and machine -> resolved plan -> scenarios -> events -> sinks. Touches the machine through its
//! environments and the door of `tactus-system`; knows no terminal.

mod allowance;
mod audits;
mod clock_bounds;
mod clock_exchange;
mod clock_fit;
mod context;
mod counting;
mod cpu_counter;
mod describe;
mod execute;
mod exit_counter;
mod interrupt;
pub mod log;
mod machine_id;
mod marks;
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
mod sink;
mod standstill;
mod sync_pace;
#[cfg(test)]
mod tests;
mod vcpu_watch;

pub use audits::Audits;
pub use context::RunError;
pub use describe::{describe, job};
pub use execute::{Destination, ExecuteError, Executed, Request, execute};
pub use interrupt::Interrupt;
pub use marks::Marks;
pub use probe_facts::{ProbeFactsError, probe_facts};
pub use recorder::Recorder;
pub use resume::keep_complete;
pub use sink::Sink;
