//! tactus makes a Linux machine keep time, and proves it.

mod cli;
mod commands;
mod exit;
mod live;
mod output;
mod say;
mod time_left;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = cli::Cli::parse();
    match commands::dispatch(arguments.command) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report().into(),
    }
}
