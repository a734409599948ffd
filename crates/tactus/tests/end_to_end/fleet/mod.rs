//! A fleet by real engines, on this machine.

mod ansible;
mod cluster;
mod slurm;

use std::fs;
use std::path::Path;

use serde_json::Value;

/// A plan of two scenarios, so that a bundle can be half done.
const PLAN: &str = "name = \"two\"
[environment.host]
kind = \"host\"
[defaults]
environment = \"host\"
measurement = \"timer\"
duration = \"2s\"
[[scenario]]
name = \"first\"
[[scenario]]
name = \"second\"
";

/// What is known of a machine.
fn row(fleet: &Path, machine: &str) -> Value {
    let file = fleet.join(format!("machines/{machine}.json"));
    fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or(Value::Null)
}

/// The manifest of a machine's bundle.
fn manifest(fleet: &Path, machine: &str) -> Value {
    let file = fleet.join(format!("bundles/{machine}/manifest.json"));
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}
