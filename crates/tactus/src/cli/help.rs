//! The help of the commands: which options the short help shows, under which headings all stand, and the examples at the end.

use clap::{Arg, Command, CommandFactory};

use super::{Cli, examples};

/// What `tactus` alone prints: a screen of 20 lines and 80 columns.
pub const SCREEN: &str = "\
{about-with-newline}
Usage: tactus COMMAND [OPTIONS]

Start here:
  sudo tactus run   Measure this machine: host, containers, virtual machines

Commands:
{subcommands}

More: watch, fleet, convert, explain. Options and examples: tactus COMMAND -h
";

/// Most options that the short help of a command shows.
#[cfg(test)]
const SHOWN: usize = 12;

/// The options that the short help shows, by their names, where a command has more than twelve.
const SHORT: &[(&str, &[&str])] = &[
    (
        "run",
        &[
            "interval", "max", "jitter", "p9999", "overruns", "title", "places", "cpus", "load", "duration",
            "long", "out",
        ],
    ),
    (
        "measure",
        &[
            "interval",
            "max",
            "jitter",
            "p9999",
            "overruns",
            "environment",
            "cpus",
            "load",
            "priority",
            "duration",
            "histogram",
            "out",
        ],
    ),
    (
        "audit",
        &[
            "environment",
            "from",
            "isolate",
            "only",
            "role",
            "full",
            "all",
            "list",
            "fail_on",
            "format",
            "json",
        ],
    ),
    (
        "prove",
        &[
            "all",
            "environment",
            "kernel",
            "cpus",
            "pairs",
            "duration",
            "quick",
            "idle",
            "dry_run",
            "out",
            "json",
        ],
    ),
    (
        "report",
        &[
            "html",
            "open",
            "format",
            "json",
            "out",
            "class",
            "only",
            "certificate",
            "customer",
            "sign",
            "verify",
        ],
    ),
    ("convert", &["formats", "to", "out", "name", "unit", "only", "max"]),
    (
        "files",
        &["profile", "isolate", "with", "vcpus", "memory", "name", "patch", "from", "out", "force", "json"],
    ),
    ("apply", &["profile", "isolate", "only", "without", "with", "again", "persist", "force", "dry_run"]),
];

/// The headings, in their order, and the options below each, by their names. All others stand below `Options`.
const HEADINGS: &[(&str, &[&str])] = &[
    (
        "Requirements",
        &["interval", "max", "jitter", "p99999", "p9999", "p999", "p99", "tail", "overruns", "margin"],
    ),
    (
        "Where",
        &[
            "places",
            "environment",
            "cpus",
            "load",
            "to",
            "kernel",
            "cmdline",
            "priority",
            "policy",
            "threads",
            "pci",
            "card",
            "file",
            "value",
            "only",
            "host_state",
            "isolate",
            "role",
        ],
    ),
    (
        "How long",
        &["duration", "long", "quick", "repeat", "interleave", "restart", "break_at", "stop_above", "pairs"],
    ),
    (
        "Output",
        &[
            "out",
            "into",
            "title",
            "json",
            "format",
            "html",
            "open",
            "plain",
            "metrics",
            "quiet",
            "raw",
            "histogram",
            "save_baseline",
            "baseline",
            "detach",
            "blame_above",
        ],
    ),
];

/// The command line, with headings, and with examples at the end of the help of each command.
pub fn command() -> Command {
    Cli::command().mut_subcommands(|command| {
        let of = |all: usize| {
            let lines = examples::of(command.get_name()).iter().take(all);
            let shown: String = lines.map(|(line, about)| format!("\n  {line}\n      {about}")).collect();
            if shown.is_empty() { shown } else { format!("Examples:{shown}") }
        };
        let (short, long) = (of(2), of(usize::MAX));
        let command = command.mut_subcommands(arranged);
        arranged(command).after_help(short).after_long_help(long)
    })
}

/// A command whose options have headings, of which the short help shows some.
fn arranged(command: Command) -> Command {
    let shown = SHORT.iter().find(|(name, _)| *name == command.get_name()).map(|(_, shown)| *shown);
    command.mut_args(|arg| {
        let id = arg.get_id().as_str().to_owned();
        let is_option = !arg.is_positional();
        let heading = HEADINGS.iter().find(|(_, ids)| is_option && ids.contains(&id.as_str()));
        let hidden = is_option && shown.is_some_and(|shown| !shown.contains(&id.as_str()));
        let arg: Arg = if hidden { arg.hide_short_help(true) } else { arg };
        match heading {
            Some((heading, _)) => arg.help_heading(*heading),
            None => arg,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each command and what is below it, by its words; not those that have another tool's options.
    fn all() -> Vec<Command> {
        let mut all = Vec::new();
        for command in command().get_subcommands() {
            all.extend(command.get_subcommands().cloned());
            all.push(command.clone());
        }
        all.retain(|command| !["cyclictest", "oslat"].contains(&command.get_name()));
        all
    }

    #[test]
    fn the_short_help_of_a_command_has_no_more_options_than_are_taken_in_at_once() {
        for command in all() {
            let shown = command.get_arguments().filter(|arg| {
                !arg.is_positional()
                    && !arg.is_hide_set()
                    && !arg.is_hide_short_help_set()
                    && arg.get_id() != "help"
            });
            let shown: Vec<_> = shown.map(|arg| arg.get_id().to_string()).collect();
            assert!(shown.len() <= SHOWN, "{}: {} {shown:?}", command.get_name(), shown.len());
        }
    }

    #[test]
    fn what_the_short_help_shows_and_what_has_a_heading_is_an_option_of_some_command() {
        let all = all();
        let known =
            |id: &str| all.iter().any(|command| command.get_arguments().any(|arg| arg.get_id() == id));
        for (command, ids) in SHORT {
            let own = all.iter().find(|one| one.get_name() == *command).unwrap();
            for id in *ids {
                assert!(own.get_arguments().any(|arg| arg.get_id() == id), "{command}: {id}");
            }
        }
        for id in HEADINGS.iter().flat_map(|(_, ids)| *ids) {
            assert!(known(id), "{id}");
        }
    }

    #[test]
    fn help_is_h_everywhere_and_ends_with_two_examples() {
        for mut command in command().get_subcommands().cloned() {
            if ["cyclictest", "oslat"].contains(&command.get_name()) {
                continue;
            }
            let name = command.get_name().to_owned();
            let text = command.render_help().to_string();
            assert!(text.contains("-h, --help"), "{name}");
            assert!(text.contains("Examples:\n  tactus "), "{name}");
        }
    }

    #[test]
    fn the_first_screen_has_twenty_lines_of_eighty_columns_at_the_most() {
        let text = command().render_help().to_string();
        assert!(text.lines().count() <= 20, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("sudo tactus run"), "{text}");
    }
}
