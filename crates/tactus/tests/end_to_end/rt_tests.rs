//! Instruments of rt-tests beside tactus under their names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{output, skipped, stderr, tactus};

/// The form of each line: digits become one `9`, blanks one blank. Rows of a histogram are the same many times.
pub fn form(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text
        .lines()
        // Which cycles overflowed is not kept: they are all among the `others`.
        .map(|line| if line.starts_with("# Thread ") && line.contains(':') { "# Thread 9:" } else { line })
        .map(|line| {
            let mut form = String::new();
            for letter in line.chars() {
                let letter = if letter.is_ascii_digit() { '9' } else { letter };
                if !(matches!(letter, '9' | ' ') && form.ends_with(letter)) {
                    form.push(letter);
                }
            }
            // A number that fills its columns has no blank before it.
            form.replace(": ", ":").replace("( ", "(")
        })
        .collect();
    lines.dedup();
    lines
}

/// The instrument and tactus, in the same directory, with the same options; `None`: the instrument is not installed.
pub fn both(name: &str, dir: &Path, options: &[&str]) -> Option<(Output, Output)> {
    let Ok(real) = Command::new(name).args(options).current_dir(dir).output() else {
        skipped(&format!("{name} is not installed"));
        return None;
    };
    assert!(real.status.success(), "{real:?}");
    for name in ["run.json", "hist.txt"] {
        let _ = fs::rename(dir.join(name), dir.join(format!("real-{name}")));
    }
    let ours = output(tactus().arg(name).args(options).current_dir(dir));
    assert_eq!(ours.status.code(), Some(0), "{}", stderr(&ours));
    Some((real, ours))
}

/// tactus under the name of an instrument, by a link in a directory.
pub fn called(name: &str, dir: &Path) -> Command {
    let link = dir.join(name);
    symlink(env!("CARGO_BIN_EXE_tactus"), &link).unwrap();
    let mut called = Command::new(link);
    called.envs(tactus().get_envs().filter_map(|(key, value)| Some((key, value?))));
    called
}

/// The keys of an object, in their order.
pub fn keys(value: &Value) -> Vec<String> {
    value.as_object().unwrap().keys().cloned().collect()
}
