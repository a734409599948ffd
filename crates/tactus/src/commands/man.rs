//! `tactus man`.

mod sections;

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
            Failure::say(format!("{}: {error}", dir.display()), "name a writable directory")
        })?;
        say(format_args!("manual pages: {}", dir.display()));
        return Ok(Exit::Good);
    }
    output::data(&String::from_utf8_lossy(&page(&Cli::command())?))?;
    Ok(Exit::Good)
}

/// A page for the command and for each of its subcommands.
fn pages(command: &Command, dir: &Directory) -> io::Result<()> {
    // Hidden commands have pages as well, except the commands that only tactus itself calls.
    let is_called = |of: &&Command| command.get_name() == "tactus" || !of.is_hide_set();
    for subcommand in command.get_subcommands().filter(is_called) {
        pages(subcommand, dir)?;
    }
    let name = clap_mangen::Man::new(command.clone()).get_filename();
    output::file(dir, Path::new(&name), &page(command)?, 0o644)
}

/// The page of a command: the parts that clap knows, then examples, exit status, files, other pages.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    page.extend(sections::of(command.get_display_name().unwrap_or("tactus")).bytes());
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_ends_with_status_files_and_other_pages() {
        let mut command = Cli::command();
        command.build();
        for command in std::iter::once(&command).chain(command.get_subcommands()) {
            let page = String::from_utf8(page(command).unwrap()).unwrap();
            let name = command.get_name();
            let at: Vec<_> =
                [".SH \"EXIT STATUS\"", ".SH FILES", ".SH \"SEE ALSO\""].map(|head| page.find(head)).to_vec();
            assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{name}");
        }
    }
}
