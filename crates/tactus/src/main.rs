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
use clap::error::ErrorKind;

fn main() -> ExitCode {
    let arguments = match cli::Cli::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => return told(&answer),
    };
    match commands::dispatch(arguments.command) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report().into(),
    }
}

/// Help and version are told as they are; an error repeats words of the command line, which may be anybody's.
fn told(answer: &clap::Error) -> ExitCode {
    let own = !answer.use_stderr() || answer.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if own {
        let _ = answer.print();
    } else {
        say::say(answer.render());
    }
    ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2))
}
