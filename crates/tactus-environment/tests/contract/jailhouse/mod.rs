//! Cells of Jailhouse, which this machine does not have: a stand-in for its command and its sysfs tree, with an
//! emulated machine as the inmate. The stand-in is compared with the transcripts of a real one.

mod board;
mod transcripts;
mod trials;
mod uart;

use std::path::Path;
use std::sync::Arc;

use tactus_model::plan;
use tactus_system::System;

use super::places::Place;
use board::{Board, overlay};

/// A board whose inmate is an emulated machine with a UART.
pub fn place() -> Place {
    let board = Board::new();
    let spec = board.spec();
    Place { spec, _held: vec![Box::new(board)] }
}

/// The machine that the stand-in makes of this one: the command lies beside its tree.
pub fn system(spec: &plan::Environment) -> Arc<dyn System> {
    let command = spec.options.get("command").and_then(|command| command.as_str()).unwrap_or_default();
    Arc::new(overlay(Path::new(command).parent().unwrap_or(Path::new("/"))))
}
