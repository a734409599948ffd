//! Arguments of `tactus report`.

use std::path::PathBuf;

use clap::Args;

use super::open::Open;
use crate::vocabulary;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Directory of the bundle. Default: the newest one in this directory
    pub bundle: Option<PathBuf>,
    /// Write the page (BUNDLE/report.html, or --out FILE)
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub html: bool,
    /// Write the page and open it in a browser (xdg-open)
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub open: bool,
    /// Format: text, html, json, markdown, junit, github, ktap, lava, svg, png. Default: by the name of --out, else text
    #[arg(long, value_name = "FORMAT", value_parser = Open(vocabulary::formats), hide_possible_values = true)]
    pub format: Option<String>,
    /// Print JSON, a stable contract (docs/schema); the same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write to this file; - is stdout, the default
    #[arg(long, value_name = "FILE|-")]
    pub out: Option<PathBuf>,
    /// Print for which classes of control application the environments are fit: with `all` the exit code does
    /// not change; with names it is 1 if an environment is not fit for one of them, and 3 if undecided
    #[arg(long, value_name = "CLASS,...", value_delimiter = ',', conflicts_with_all = ["html", "open", "raw"])]
    pub class: Vec<String>,
    /// Read more classes from this TOML file; one with the name of a built-in class replaces it
    #[arg(long, value_name = "FILE", requires = "class")]
    pub classes: Option<PathBuf>,
    /// Write a certificate of two pages, as PDF and HTML: the answer and its conditions
    #[arg(long, conflicts_with_all = ["html", "open", "format", "json", "class", "only", "damaged"])]
    pub certificate: bool,
    /// Title of the certificate. Default: the title of the run
    #[arg(long, value_name = "TEXT", requires = "certificate")]
    pub title: Option<String>,
    /// The customer that the certificate is for
    #[arg(long, value_name = "TEXT", requires = "certificate")]
    pub customer: Option<String>,
    /// Location of the machine
    #[arg(long, value_name = "TEXT", requires = "certificate")]
    pub site: Option<String>,
    /// Name of the person who measured
    #[arg(long, value_name = "TEXT", requires = "certificate")]
    pub operator: Option<String>,
    /// Serial number of the machine
    #[arg(long, value_name = "TEXT", requires = "certificate")]
    pub serial: Option<String>,
    /// Sign the bundle with this key of OpenSSH (a public key if an agent has the private one)
    #[arg(long, value_name = "KEY", conflicts_with_all = ["html", "open", "format", "json", "class", "only", "damaged", "out"])]
    pub sign: Option<PathBuf>,
    /// Check the bundle and its certificates against the signature, and print the key that signed them: exit
    /// code 1 if one byte differs
    #[arg(long, conflicts_with_all = ["html", "open", "format", "json", "class", "only", "damaged", "out", "sign", "certificate"])]
    pub verify: bool,
    /// With --verify: the key must be one of these (an allowed signers file, see ssh-keygen)
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub signers: Option<PathBuf>,
    /// Show only these scenarios or environments; repeat the option, or separate names by commas
    #[arg(long, value_name = "NAME,...")]
    pub only: Vec<String>,
    /// Also show the quantiles of the wake-ups that happened, where periods were missed
    #[arg(long)]
    pub raw: bool,
    /// Read what is left of a damaged bundle, and report the damage
    #[arg(long)]
    pub damaged: bool,
}
