//! `tactus probe`.

use std::path::Path;

use tactus_system::probe;

use crate::cli::Probe;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

/// The mode of a program, for chmod(2).
const PROGRAM: u32 = 0o755;

pub fn probe(arguments: &Probe) -> Result<Exit, Failure> {
    let arch = &arguments.arch;
    let bytes = probe::bytes(arch).ok_or_else(|| {
        Failure::say(
            format!("this tactus was built without a probe for {arch}"),
            format!("build it with the Rust target {arch}-unknown-linux-musl (rustup target add)"),
        )
    })?;
    if arguments.out == Path::new("-") {
        output::bytes(bytes)?;
        return Ok(Exit::Good);
    }
    output::file_at(&arguments.out, bytes, PROGRAM).map_err(|error| {
        Failure::say(format!("{}: {error}", arguments.out.display()), "name a file in a writable directory")
    })?;
    say(format_args!("the probe for {arch}: {}", arguments.out.display()));
    Ok(Exit::Good)
}
