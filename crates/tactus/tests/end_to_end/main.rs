//! The command from end to end, on this machine.
#![expect(clippy::disallowed_methods, reason = "these tests look at the machine from outside the door")]

mod application;
mod audit;
mod bare;
mod baseline;
mod blame;
mod blocked;
mod collect;
mod command;
mod common;
mod compare;
mod container;
mod cyclictest;
mod detached;
mod disks;
mod endings;
mod examples;
mod export;
mod fitness;
mod fleet;
mod foreign;
mod forged;
mod guest;
mod heard;
mod hold;
mod hostile;
mod housekeeping;
mod import;
mod install;
mod interrupt;
mod logged;
mod lots;
mod metrics;
mod nested;
mod network;
mod on_docker;
mod one_at_a_time;
mod oslat;
mod paused;
mod prove;
mod repeats;
mod restarted;
mod rt_tests;
mod run;
mod serve;
mod slices;
#[path = "../../../tactus-environment/tests/contract/sshd.rs"]
mod sshd;
mod strangers;
mod streams;
mod study;
mod throttled;
mod timerlat;
mod tune;
mod twelve;
mod unproven;
mod values;
mod watching;
mod words;

/// A plan's table for an environment.
fn spec(kind: &str, options: &[(&str, &str)]) -> tactus_model::plan::Environment {
    let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    tactus_model::plan::Environment { kind: kind.into(), options, ..Default::default() }
}
