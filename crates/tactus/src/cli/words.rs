//! Arguments of the commands about tactus itself.

use std::path::PathBuf;

use clap::Args;

use super::open::Open;
use crate::vocabulary;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The word; default: list all of them
    #[arg(value_parser = Open(vocabulary::words), hide_possible_values = true)]
    pub word: Option<String>,
    /// Print the same as JSON on stdout
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Write one page per command into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
