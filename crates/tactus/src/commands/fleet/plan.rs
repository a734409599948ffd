//! The plan of a fleet, and what is said beside it to each machine's `tactus run`.

use std::path::Path;

use clap::Parser;
use tactus_model::Nanos;
use tactus_run::plan::parse;

use crate::cli::{Cli, Command, Run};
use crate::commands::run::named;
use crate::exit::Failure;

/// Its name, and its text as every machine gets it.
pub fn text(name: &str) -> Result<(String, String), Failure> {
    let (plan, source) = named(name)?;
    // A card's file lies here, and not there.
    if parse(&source)? != plan {
        return Err(Failure::say(
            format!("{name} names files that describe cards, but machines of a fleet get only the plan"),
            "write the text of each card into the plan, instead of the name of its file",
        ));
    }
    Ok((plan.name, source.text))
}

/// The arguments of `tactus run` on a machine.
pub fn arguments(plan: &str, bundle: &Path, wait: Nanos, further: &[String]) -> Result<Run, Failure> {
    let bundle =
        bundle.to_str().ok_or_else(|| Failure::say("the bundle's name is not UTF-8", "name another"))?;
    let wait = format!("{}ns", wait.0);
    let mut words = vec!["tactus", "run", plan, "--into", bundle, "--wait", &wait];
    words.extend(further.iter().map(String::as_str));
    let hint = "the arguments after `--` go to `tactus run` on each machine";
    let parsed = Cli::try_parse_from(words).map_err(|error| {
        let text = error.render().to_string();
        Failure::say(text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(), hint)
    })?;
    match parsed.command {
        Command::Run(run) if run.detach.detach => {
            Err(Failure::say("--detach: the engine would take a detached job for an ended one", hint))
        }
        Command::Run(run) => Ok(run),
        _ => Err(Failure::say("these are not arguments of `tactus run`", hint)),
    }
}
