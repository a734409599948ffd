//! `tactus completions SHELL`.

use clap::CommandFactory;

use crate::cli::{Cli, Completions};
use crate::exit::{Exit, Failure};
use crate::output;

pub fn completions(arguments: &Completions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "tactus", &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Good)
}
