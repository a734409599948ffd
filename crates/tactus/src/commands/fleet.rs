//! `tactus fleet`: one file per subcommand.

mod show;

use crate::cli::{Fleet, FleetCommand};
use crate::exit::{Exit, Failure};

pub fn fleet(arguments: &Fleet) -> Result<Exit, Failure> {
    match &arguments.what {
        FleetCommand::Show(arguments) => show::show(arguments),
    }
}
