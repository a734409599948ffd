//! `tactus man`.

use clap::CommandFactory;

use crate::cli::{Cli, Man};
use crate::exit::{Exit, Failure};
use crate::output;

pub fn man(arguments: &Man) -> Result<Exit, Failure> {
    let command = Cli::command();
    if let Some(dir) = &arguments.out {
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir)).map_err(
            |error| {
                Failure::say(format!("{}: {error}", dir.display()), "name a directory that can be written")
            },
        )?;
        eprintln!("manual pages: {}", dir.display());
        return Ok(Exit::Good);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    output::data(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Good)
}
