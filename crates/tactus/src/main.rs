//! tactus makes a Linux machine keep time, and proves it.

mod cli;
mod commands;
mod exit;
mod glossary;
mod live;
mod load;
mod nearest;
mod newest;
mod options;
mod output;
mod place;
mod say;
mod synonyms;
mod time_left;
mod vocabulary;
mod watching;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};

fn main() -> ExitCode {
    let matches = cli::command().try_get_matches_from(words(std::env::args_os().collect()));
    let arguments = match matches.and_then(|matches| cli::Cli::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(answer) => return told(&answer),
    };
    if let Err(failure) = log(arguments.verbose) {
        return failure.report().into();
    }
    match commands::dispatch(arguments.command, arguments.verbose) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report().into(),
    }
}

/// The variable that says which levels of the log are shown.
const LOG: &str = "TACTUS_LOG";

/// Begins the log, which stderr shows as far as the user asked for it.
fn log(verbose: bool) -> Result<(), exit::Failure> {
    let asked = std::env::var_os(LOG).filter(|asked| !asked.is_empty());
    let asked = asked.map(|asked| asked.to_string_lossy().into_owned());
    let shown = asked.or_else(|| verbose.then(|| "info".to_owned()));
    let levels = shown.map(|text| tactus_run::log::levels(&text)).transpose().map_err(|error| {
        let hint = "levels are error, warn, info, debug, trace and off; of one crate: tactus_system=debug";
        exit::Failure::say(format!("{LOG}: {error}"), hint)
    })?;
    tactus_run::log::begin(levels, |line| say::say(line));
    Ok(())
}

/// The words of the command line. Under the name of an instrument whose options tactus takes, its command is meant;
/// `help COMMAND` is `COMMAND --help`.
fn words(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    let called = words.first().and_then(|word| Path::new(word).file_name()?.to_str());
    if let Some(name) = ["cyclictest", "oslat"].into_iter().find(|name| called == Some(name)) {
        words.insert(1, name.into());
    }
    words
}

/// The last line of clap's errors, which repeats no word of the command line.
const ASK: &str = "For more information, try '--help'.";
/// Begins a line of clap's errors that names the most similar word.
const TIP: &str = "  tip: ";

/// Begins a tip that takes an unknown option for a file's name.
const AS_A_VALUE: &str = "to pass '";

/// The command that words call: `tactus fleet run`. Clap's errors do not all name it.
fn called(words: &[OsString]) -> String {
    let root = cli::command();
    let (mut command, mut names) = (&root, vec!["tactus"]);
    let words = words.iter().skip(1).filter_map(|word| word.to_str());
    for word in words.filter(|word| !word.starts_with('-')) {
        let Some(next) = command.find_subcommand(word) else { break };
        names.push(next.get_name());
        command = next;
    }
    names.join(" ")
}

/// An error of clap in the form of the others: what is wrong, and the hints, each a separate line. `command`: the command
/// that was called. `is_broken`: a word of the command line has several lines, one of which could pass for a hint.
fn complaint(text: &str, command: &str, is_broken: bool) -> (String, Vec<String>) {
    let text = text.trim_end().strip_suffix(ASK).unwrap_or(text).trim_end();
    let is_tip = |line: &&str| !is_broken && line.starts_with(TIP);
    let (tips, mut lines): (Vec<&str>, Vec<&str>) = text.lines().partition(is_tip);
    // Each part of clap's has an empty line before it, which the tip leaves behind.
    lines.dedup_by(|one, before| one.is_empty() && before.is_empty());
    let mut hints: Vec<String> = tips
        .iter()
        .filter_map(|tip| tip.strip_prefix(TIP))
        .filter(|tip| !tip.starts_with(AS_A_VALUE))
        .map(|tip| format!("hint: {tip}"))
        .collect();
    if hints.is_empty() {
        let command = if is_broken { "tactus" } else { command };
        hints.push(format!("hint: `{command} --help` lists the options"));
    }
    let lines: Vec<String> = lines.into_iter().map(in_words).collect();
    (lines.join("\n"), hints)
}

/// A line of clap's with its range in words: `0 is not in 1..=1000`.
fn in_words(line: &str) -> String {
    let range =
        line.rsplit_once(" is not in ").and_then(|(before, range)| Some((before, range.split_once("..")?)));
    let Some((before, (low, high))) = range else { return line.to_owned() };
    let high = high.trim_start_matches('=');
    // Without an upper limit clap prints the largest number of the type.
    match high.parse::<u64>() {
        Ok(high) if high < u64::from(u32::MAX) => format!("{before} is not in {low} to {high}"),
        _ => format!("{before} is not {low} or more"),
    }
}

/// Prints an answer of clap. Help and version are printed as they are; an error repeats words of the command line,
/// which are not trusted.
fn told(answer: &clap::Error) -> ExitCode {
    if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(name))) =
        (answer.kind(), answer.get(ContextKind::InvalidSubcommand))
        && let Some(is) = cli::moved(name)
    {
        return exit::Failure::say(format!("there is no command `{name}` any more"), format!("use `{is}`"))
            .report()
            .into();
    }
    let own = !answer.use_stderr() || answer.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if own {
        if let Err(unwritten) = output::Unwritten::of(answer.print()) {
            return exit::Failure::from(unwritten).report().into();
        }
    } else {
        let is_broken = std::env::args_os().any(|word| word.as_encoded_bytes().contains(&b'\n'));
        let command = called(&words(std::env::args_os().collect()));
        let (what, hints) = complaint(&answer.render().to_string(), &command, is_broken);
        say::say(what);
        hints.into_iter().for_each(say::say);
    }
    ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_the_command_that_was_called() {
        let called = |line: &str| called(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(called("tactus --nothing"), "tactus");
        assert_eq!(called("tactus run --duration ten"), "tactus run");
        assert_eq!(called("tactus --verbose fleet run plan.toml --wave 0"), "tactus fleet run");
        assert_eq!(called("tactus nowhere run"), "tactus");
    }

    #[test]
    fn a_range_is_said_in_words() {
        assert_eq!(in_words("invalid value: 0 is not in 1..=1000"), "invalid value: 0 is not in 1 to 1000");
        assert_eq!(in_words("0 is not in 1..=4294967295"), "0 is not 1 or more");
        assert_eq!(in_words("0 is not in 1..18446744073709551615"), "0 is not 1 or more");
        assert_eq!(in_words("`x` is not in the plan"), "`x` is not in the plan");
    }
}
