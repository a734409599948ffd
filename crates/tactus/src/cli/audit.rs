//! Arguments of `tactus audit`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tactus_model::CpuSet;

use super::open::{Open, checks};
use crate::place;

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub struct Audit {
    /// Audit a guest or container: a kind (tactus starts one), or the address of a running one (as
    /// docker:NAME)
    #[arg(long = "in", value_name = "PLACE", conflicts_with = "from", value_parser = Open(place::words), hide_possible_values = true)]
    pub environment: Option<String>,
    /// Guest kernel, with --in for kinds that boot one
    #[arg(long, value_name = "NAME|PATH", requires = "environment")]
    pub kernel: Option<String>,
    /// Further kernel parameters of the guest, with --in
    #[arg(long, value_name = "TEXT", requires = "environment")]
    pub cmdline: Option<String>,
    /// Judge recorded facts again: a bundle, or a file of facts
    #[arg(long, value_name = "BUNDLE|FILE")]
    pub from: Option<PathBuf>,
    /// The role of the system; default: the role of its environment
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Option<Role>,
    /// CPUs meant for real-time work; default: the isolated CPUs, else all except those of the first core
    #[arg(long, value_name = "CPUS")]
    pub isolate: Option<CpuSet>,
    /// Only these checks; separate several with commas
    #[arg(long, value_name = "ID,...", value_delimiter = ',', value_parser = Open(checks), hide_possible_values = true)]
    pub only: Vec<String>,
    /// List all checks instead
    #[arg(long)]
    pub list: bool,
    /// Print the fixes that help most, and the worst findings in a line each: the default without --only
    #[arg(long)]
    pub brief: bool,
    /// Print each finding with what was read, why it matters and how to fix it: the default with --only
    #[arg(long, conflicts_with = "brief")]
    pub full: bool,
    /// Also print the checks that are not findings, each with the reason
    #[arg(long)]
    pub all: bool,
    /// Lowest severity that makes the exit code 1 (and fails a JUnit case)
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = Threshold::Blocker)]
    pub fail_on: Threshold,
    /// The format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// As a JSON document (a stable contract)
    #[arg(long)]
    pub json: bool,
}

/// The part that a system plays.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Role {
    /// The machine itself
    Host,
    /// A virtual machine
    Guest,
    /// A container
    Container,
}

/// Formats of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a terminal
    Text,
    /// A stable contract
    Json,
    /// For an issue or a pull request
    Markdown,
    /// For a CI server
    Junit,
}

/// From which severity on the exit code is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Threshold {
    /// Blockers only
    Blocker,
    /// Major ones and blockers
    Major,
    /// All but remarks
    Minor,
    /// Any finding
    Info,
    /// Never
    Never,
}
