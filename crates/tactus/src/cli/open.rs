//! Values that a shell completes if they are known, and that may also be unknown: addresses, files, lists.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};

/// Any text; the shell completes these words.
#[derive(Clone)]
pub struct Open(pub fn() -> Vec<&'static str>);

impl TypedValueParser for Open {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

/// The ids of all checks.
pub fn checks() -> Vec<&'static str> {
    tactus_audit::all().map(|(_, check)| check.id).collect()
}
