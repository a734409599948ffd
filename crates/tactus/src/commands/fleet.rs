//! `tactus fleet`: one plan on many machines, by the engine that they have.

mod bundles;
mod job;
mod place;
mod plan;
mod run;
mod show;

use crate::cli::FleetCommand;
use crate::exit::{Exit, Failure};

pub fn fleet(what: &FleetCommand) -> Result<Exit, Failure> {
    match what {
        FleetCommand::Run(arguments) => run::run(arguments),
        FleetCommand::Render(arguments) => run::render(arguments),
        FleetCommand::Status(arguments) => place::status(arguments),
        FleetCommand::Collect(arguments) => place::collect(arguments),
        FleetCommand::Show(arguments) => show::show(arguments),
        FleetCommand::Job(arguments) => job::job(arguments),
    }
}
