//! docs/reference/commands.md: every command, its options and examples, from the table that makes the help.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command};

use super::{command, examples};

/// The page.
fn page() -> String {
    let mut page = String::from(
        "# Commands\n\n\
         What is each option called, and what does it do? This page is made from the command line \
         (`UPDATE_DOCS=1 cargo test -p tactus reference`).\n\n",
    );
    let all = command();
    for one in all.get_subcommands() {
        let _ = writeln!(page, "- [`tactus {0}`](#tactus-{0}): {1}", one.get_name(), about(one));
    }
    for one in all.get_subcommands() {
        described(&mut page, one, "tactus");
        for (line, about) in examples::of(one.get_name()) {
            let _ = writeln!(page, "- `{line}`: {about}");
        }
    }
    page
}

fn described(page: &mut String, one: &Command, above: &str) {
    let name = format!("{above} {}", one.get_name());
    let _ = write!(page, "\n## {name}\n{}.\n\n", about(one));
    let shown: Vec<&Arg> = one.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    if !shown.is_empty() {
        page.push_str("| option | what it does |\n|---|---|\n");
    }
    for arg in shown {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let help =
            help.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;");
        let _ = writeln!(page, "| `{}` | {help}{} |", spelled(arg), default(arg));
    }
    if one.has_subcommands() {
        for below in one.get_subcommands() {
            described(page, below, &name);
        }
    }
    page.push('\n');
}

fn about(one: &Command) -> String {
    one.get_about().map(ToString::to_string).unwrap_or_default()
}

/// `-i, --interval US`
fn spelled(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let takes = arg.get_action().takes_values();
    let value = if takes { names.iter().map(|name| format!(" {name}")).collect() } else { String::new() };
    let words = [arg.get_short().map(|c| format!("-{c}")), arg.get_long().map(|long| format!("--{long}"))];
    let words: Vec<String> = words.into_iter().flatten().collect();
    format!("{}{value}", words.join(", ")).trim().replace('|', "\\|")
}

fn default(arg: &Arg) -> String {
    let values: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let takes = arg.get_action().takes_values();
    if values.is_empty() || !takes { String::new() } else { format!(" (default: {})", values.join(",")) }
}

/// `UPDATE_DOCS=1` writes it anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test reads and writes the book")]
fn the_reference_of_commands_is_the_command_line() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    let made = page();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &made).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == made, "docs/reference/commands.md is out of date: run with UPDATE_DOCS=1");
}
