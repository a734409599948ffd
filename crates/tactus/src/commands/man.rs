//! `tactus man`.

use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use tactus_system::Directory;

use crate::cli::{Cli, Man};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

pub fn man(arguments: &Man) -> Result<Exit, Failure> {
    if let Some(dir) = &arguments.out {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        output::directory(dir).and_then(|dir| pages(&command, &dir)).map_err(|error| {
            Failure::say(format!("{}: {error}", dir.display()), "name a directory that can be written")
        })?;
        say(format_args!("manual pages: {}", dir.display()));
        return Ok(Exit::Good);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    output::data(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Good)
}

/// A page for the command and for each of its subcommands.
fn pages(command: &Command, dir: &Directory) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        pages(subcommand, dir)?;
    }
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    output::file(dir, Path::new(&man.get_filename()), &page, 0o644)
}
