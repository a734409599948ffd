//! Arguments of `tactus fleet run` and `tactus fleet render`.

use std::path::PathBuf;

use clap::Args;
use tactus_model::Nanos;

use crate::cli::open::Open;
use crate::cli::values::duration;
use crate::vocabulary;

/// What is to be done where.
#[derive(Debug, Args)]
pub struct Wanted {
    /// A study by name, or a plan file. Every machine runs its commands: read a stranger's plan first
    #[arg(value_parser = Open(vocabulary::studies), hide_possible_values = true)]
    pub plan: String,
    /// The engine that starts the jobs: slurm, ansible or kubernetes; `tactus explain` lists the options of
    /// each
    #[arg(long, value_name = "ENGINE", value_parser = Open(vocabulary::engines), hide_possible_values = true)]
    pub on: String,
    /// The machines: partition=NAME, feature=NAME, nodes=LIST or all (Slurm), a host pattern (Ansible), a label
    /// selector (Kubernetes)
    #[arg(long, value_name = "WHAT")]
    pub select: String,
    /// Directory of the fleet, which holds all of its state: a new or empty one, or that of the fleet to
    /// continue
    #[arg(long, value_name = "FLEET")]
    pub out: PathBuf,
    /// Option of the engine; repeat it for several. `tactus explain` lists the options of each engine
    #[arg(long = "with", value_name = "NAME=VALUE", value_parser = pair)]
    pub with: Vec<(String, String)>,
    /// Further arguments of `tactus run` on each machine, after `--`: `-- --quick`
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}

/// Arguments of `fleet run`.
#[derive(Debug, Args)]
pub struct FleetRun {
    #[command(flatten)]
    pub wanted: Wanted,
    /// Maximum number of machines in progress at once
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..))]
    pub wave: u32,
    /// Maximum time to wait; jobs continue, and the same command fetches their bundles later. Default: until
    /// no job is in progress
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub wait: Option<Nanos>,
    /// Time between two queries to the engine; default: the engine's
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub every: Option<Nanos>,
    /// The state of each machine as a JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `fleet render`.
#[derive(Debug, Args)]
pub struct FleetRender {
    #[command(flatten)]
    pub wanted: Wanted,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("say NAME=VALUE")?;
    if name.is_empty() { Err("say NAME=VALUE".into()) } else { Ok((name.into(), value.into())) }
}
