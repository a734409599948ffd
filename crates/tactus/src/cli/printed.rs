//! In which form a result is printed.

use clap::Args;

use super::open::Open;
use crate::vocabulary;

/// The form in which a result is printed.
#[derive(Debug, Default, Args)]
pub struct Printed {
    /// Print the result as JSON (--format json)
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Print the result in this format, alone on stdout: text, json, junit, markdown, github, ktap, lava, html, svg, png
    #[arg(long, value_name = "FORMAT", value_parser = Open(vocabulary::formats), hide_possible_values = true)]
    pub format: Option<String>,
}

impl Printed {
    /// The word of the format, where another program may read what is printed.
    pub fn word(&self) -> Option<&str> {
        if self.json { Some("json") } else { self.format.as_deref().filter(|word| *word != "text") }
    }
}
