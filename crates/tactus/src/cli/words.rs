//! Arguments of the commands about tactus itself.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The word; without it: all of them
    pub word: Option<String>,
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
