//! The probe: one static program that is put into every environment. It collects facts, measures, makes load, injects
//! faults, and guards the changes that a run must undo.
#![expect(
    clippy::disallowed_methods,
    reason = "the probe is on the machine: it is what the door of others leads to"
)]

mod actions;
mod answer;
mod arrivals;
mod blame;
mod bpf;
mod breakdown;
mod capabilities;
mod channel;
mod cli;
mod clock_check;
mod enter;
mod facts;
mod fault;
mod guardian;
mod guest;
mod housekeeping;
mod job;
mod keeper;
mod kvm_exits;
mod load;
mod memory;
mod processor;
mod rpc;
mod self_test;
mod serial;
mod session;
mod settings;
mod stderr;
mod sys;
mod timerlat;
mod toggle;
mod tracefs;
mod tracer;
mod values;
mod vcpu_watch;
mod work;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything narrows it: where this process may run.
    tactus_measure::thread::allowed();
    // The kernel passes words of its command line to PID 1: they are not arguments of this program.
    if guest::is_whole_system() {
        guest::run();
    }
    ExitCode::from(cli::run())
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::{Entry, fault, load, measure};

    #[test]
    fn every_word_of_the_catalogue_has_its_file_in_its_table() {
        let names = |table: &[&Entry]| table.iter().map(|entry| entry.name).collect::<Vec<_>>();
        let latencies = tactus_measure::MEASUREMENTS.iter().map(|entry| entry.name());
        let values = super::values::MEASUREMENTS.iter().map(|entry| entry.name());
        let (of_values, of_latency): (Vec<&Entry>, Vec<&Entry>) =
            measure::MEASURES.iter().partition(|entry| !entry.items.is_empty());
        let mut faults = super::fault::NAMES.to_vec();
        // The watch, outside of the guest, injects the faults that act on a guest from outside.
        faults.push("hold-vcpu");
        assert_eq!(latencies.collect::<Vec<_>>(), names(&of_latency));
        assert_eq!(values.collect::<Vec<_>>(), names(&of_values));
        assert_eq!(super::load::NAMES, names(load::LOADS));
        assert_eq!(faults, names(fault::FAULTS));
    }
}
