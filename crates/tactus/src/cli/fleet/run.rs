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
    /// A study by name, or a plan file. Every machine runs its commands, so look at one of a stranger first
    #[arg(value_parser = Open(vocabulary::studies), hide_possible_values = true)]
    pub plan: String,
    /// What starts jobs there: slurm, ansible or kubernetes; `tactus explain` says what each takes
    #[arg(long, value_name = "ENGINE", value_parser = Open(vocabulary::engines), hide_possible_values = true)]
    pub on: String,
    /// Which machines, in the engine's own words: a partition, a pattern of hosts, a selector of labels
    #[arg(long, value_name = "WHAT")]
    pub select: String,
    /// Directory of the fleet, which is all of its state: a new or empty one, or that of the fleet to continue
    #[arg(long, value_name = "FLEET")]
    pub out: PathBuf,
    /// How the engine is used; several times. `tactus explain` lists what each engine takes
    #[arg(long = "with", value_name = "NAME=VALUE", value_parser = pair)]
    pub with: Vec<(String, String)>,
    /// Further words of `tactus run` on each machine, behind `--`: `-- --quick`
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}

/// Arguments of `fleet run`.
#[derive(Debug, Args)]
pub struct FleetRun {
    #[command(flatten)]
    pub wanted: Wanted,
    /// How many machines are under way at once
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..))]
    pub wave: u32,
    /// How long to wait at most; jobs continue, and the same command brings their bundles later. Default: until no job is
    /// under way
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub wait: Option<Nanos>,
    /// How often the engine is asked; default: the engine's own
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
