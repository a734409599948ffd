//! The probe: one static program that is put into every environment. It collects facts, measures,
//! makes load, injects faults, and guards what a run must take back.

mod channel;
mod cli;
mod clock;
mod companion;
mod facts;
mod fault;
mod job;
mod load;
mod measure;
mod session;
mod sys;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything narrows it: where this process may run.
    measure::thread::allowed();
    ExitCode::from(cli::run())
}
