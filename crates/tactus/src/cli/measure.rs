//! Arguments of `tactus measure`, with cyclictest's letters.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tactus_model::Nanos;
use tactus_model::catalogue::measure::MEASURES;
use tactus_model::cpus::CpuRequest;

use super::blame::BlameOptions;
use super::detach::Detach;
use super::limits::Limits;
use super::lock::Lock;
use super::open::Open;
use super::printed::Printed;
use super::restart::RestartOption;
use super::screen::Screen;
use super::values::{microseconds, seconds};
use crate::{load, place, synonyms};

/// Arguments of `measure`.
#[derive(Debug, Args)]
pub struct Measure {
    /// What to measure: timer, spin, interrupt, application, timerlat, os, exits, cpu, memory or network
    #[arg(value_name = "MEASUREMENT", default_value = "timer", value_parser = Open(measurements), hide_possible_values = true)]
    pub what: String,
    /// The same
    #[arg(long, value_name = "WORD", value_parser = Open(measurements), hide = true)]
    pub measurement: Option<String>,
    /// Time between two wake-ups; a bare number is microseconds
    #[arg(short = 'i', long, value_name = "US", default_value = "200us", value_parser = microseconds)]
    pub interval: Nanos,
    /// Where: a kind of environment, or the address of a running one (pod:NAMESPACE/NAME, docker:NAME,
    /// podman:NAME, lxc:NAME, nspawn:NAME, libvirt:DOMAIN, ssh:[USER@]HOST, serial:DEVICE)
    #[arg(long = "in", value_name = "PLACE", default_value = "host", value_parser = Open(place::words), hide_possible_values = true)]
    pub environment: String,
    /// The kind of guest that gets the interrupts, for `interrupt`
    #[arg(long = "to", value_name = "KIND", conflicts_with = "load")]
    pub to: Option<String>,
    /// The file in which a program marks its cycles, for `application`
    #[arg(long, value_name = "FILE")]
    pub file: Option<String>,
    /// What to measure of a cycle, for `application`: response, start or execution; for `timerlat`: irq or
    /// thread. Default: response; both
    #[arg(long, value_name = "WORD")]
    pub value: Option<String>,
    /// The file that describes a card, for `interrupt` of a device (contrib/cards)
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    pub card: Option<String>,
    /// A PCI device of the guest: edu, or the address of one of this machine that is bound to vfio-pci
    #[arg(long, value_name = "DEVICE", requires = "card")]
    pub pci: Vec<String>,
    /// Real-time priority of the (first) measuring thread
    #[arg(short = 'p', long, value_name = "PRIO", default_value_t = 95)]
    pub priority: u32,
    /// CPUs to measure on: a list, `auto`, `isolated`, `all`, `!0`
    #[arg(short = 'a', long = "cpus", alias = "affinity", value_name = "CPUS", default_value = "auto")]
    pub cpus: CpuRequest,
    /// Total number of measuring threads, spread over the CPUs; each further thread of a CPU has a priority
    /// one lower. Default: one per CPU
    #[arg(short = 't', long, value_name = "N")]
    pub threads: Option<u32>,
    /// Duration; a bare number is seconds
    #[arg(short = 'D', long, value_name = "TIME", default_value = "10s", value_parser = seconds)]
    pub duration: Nanos,
    /// Print a histogram up to this many microseconds, as cyclictest -h does
    #[arg(long, value_name = "US")]
    pub histogram: Option<u32>,
    /// Stop when a latency exceeds this (exit code 1), and stop ftrace with it if the kernel traces; a bare number
    /// is microseconds
    #[arg(short = 'b', long = "breaktrace", value_name = "US", value_parser = microseconds, conflicts_with = "stop_above")]
    pub break_at: Option<Nanos>,
    /// Scheduling policy. Default: fifo; for values, application and timerlat: other
    #[arg(long, value_enum)]
    pub policy: Option<Policy>,
    /// Load in the same environment; repeat it for several. Parameters as in cache:bytes=8M, a program as in
    /// 'command:stress-ng --malloc 1'; `tactus explain` lists the loads
    #[arg(long, value_name = "LOAD", value_parser = Open(load::words), hide_possible_values = true)]
    pub load: Vec<String>,
    /// Guest kernel, for environments that boot one
    #[arg(long, value_name = "NAME|PATH")]
    pub kernel: Option<String>,
    /// Start this QEMU, with --in qemu: a path, or a name on the PATH
    #[arg(long, value_name = "PROGRAM")]
    pub qemu: Option<String>,
    /// Add this argument to QEMU's command line, with --in qemu; repeat it for each argument, as
    /// --qemu-arg=-global
    #[arg(long = "qemu-arg", value_name = "WORD", allow_hyphen_values = true)]
    pub qemu_arguments: Vec<String>,
    /// Leave out the self-test, which injects a fault of 1 ms
    #[arg(long = "no-self-test")]
    pub no_control: bool,
    /// Leave the system as it is while measuring (cpu_dma_latency is not held, no counter of the processor is used,
    /// ftrace is not stopped)
    #[arg(long)]
    pub no_side_effects: bool,
    /// Count why virtual CPUs of a guest exit, and for how long, by BPF at KVM's tracepoints
    #[arg(long, conflicts_with = "no_side_effects")]
    pub kvm_exits: bool,
    /// Title of the report
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    #[command(flatten)]
    pub blame: BlameOptions,
    #[command(flatten)]
    pub restart: RestartOption,
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub lock: Lock,
    #[command(flatten)]
    pub screen: Screen,
    #[command(flatten)]
    pub detach: Detach,
    /// Keep the bundle in this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print no live screen and no lines
    #[arg(short = 'q', long)]
    pub quiet: bool,
    #[command(flatten)]
    pub printed: Printed,
}

impl Measure {
    /// What is measured.
    pub fn word(&self) -> &str {
        synonyms::measurement(self.measurement.as_deref().unwrap_or(&self.what))
    }
}

fn measurements() -> Vec<&'static str> {
    MEASURES.iter().map(|measure| measure.name).collect()
}

/// Scheduling policies.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Policy {
    /// SCHED_FIFO
    Fifo,
    /// SCHED_RR
    Rr,
    /// SCHED_DEADLINE
    Deadline,
    /// SCHED_OTHER
    Other,
}
