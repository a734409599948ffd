//! `tactus explain [WORD]`: every word of a plan, from the same entries that the program runs on.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Serialize;
use tactus_audit::{self as audit, Check};
use tactus_environment::{self as environment, ENVIRONMENTS};
use tactus_fleet::ENGINES;
use tactus_format::export::EXPORTS;
use tactus_model::catalogue::{self, Entry, fault, load, measure};
use tactus_report::render::FORMATS;
use tactus_report::units::wrapped;
use tactus_run::plan::{STUDIES, Source, parse, study};
use tactus_tune::generate::{self, GENERATORS};

use crate::cli::Explain;
use crate::exit::{Exit, Failure};
use crate::glossary::{self, TERMS};
use crate::nearest;
use crate::output;
use crate::synonyms;
use crate::vocabulary::words;

/// Columns of the names in a list, at the least.
const NAMES: usize = 16;
/// Fewer letters are no beginning of a word.
const SHORTEST: usize = 3;

pub fn explain(arguments: &Explain) -> Result<Exit, Failure> {
    let Some(name) = &arguments.word else {
        match arguments.json {
            true => output::json(&listed())?,
            false => output::text(&all(output::width()))?,
        }
        return Ok(Exit::Good);
    };
    let text = found(name).ok_or_else(|| {
        let hint = nearest::hint(name, words(), "`tactus explain` lists all of them");
        Failure::say(format!("unknown word `{name}`"), hint)
    })?;
    match arguments.json {
        true => output::json(&Explained { word: name, text: &text })?,
        false => output::text(&text)?,
    }
    Ok(Exit::Good)
}

/// The explanation of a word; of a synonym of it; or of the only word that begins so.
fn found(name: &str) -> Option<String> {
    one(name).or_else(|| one(synonyms::any(name)?)).or_else(|| {
        let begin: BTreeSet<&str> = words().into_iter().filter(|word| word.starts_with(name)).collect();
        match (name.len() >= SHORTEST, begin.first(), begin.len()) {
            (true, Some(only), 1) => one(only),
            _ => None,
        }
    })
}

/// A word and what is said of it, for programs.
#[derive(Serialize)]
struct Explained<'a> {
    word: &'a str,
    text: &'a str,
}

/// A word of a section, for programs.
#[derive(Serialize)]
struct Listed {
    word: &'static str,
    section: &'static str,
    summary: String,
}

fn listed() -> Vec<Listed> {
    let of = |(section, entries): (&'static str, Vec<(&'static str, String)>)| {
        entries.into_iter().map(move |(word, summary)| Listed { word, section, summary })
    };
    let checks = audit::all().map(|(_, check)| (check.id, check.title.to_owned())).collect();
    sections().into_iter().chain([("Checks", checks)]).flat_map(of).collect()
}

/// All words but those of the audit, by what they are.
fn sections() -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let family =
        |of: &[&'static Entry]| of.iter().map(|entry| (entry.name, entry.summary.to_owned())).collect();
    vec![
        ("Environments", ENVIRONMENTS.iter().map(|e| (e.kind(), first_sentence(e.about()))).collect()),
        ("Measurements", family(measure::MEASURES)),
        ("Loads", family(load::LOADS)),
        ("Faults", family(fault::FAULTS)),
        ("Studies", STUDIES.iter().map(|s| (s.name, title(s.name, s.text))).collect()),
        ("Generators", GENERATORS.iter().map(|g| (g.name, first_sentence(g.about))).collect()),
        ("Engines of a fleet", ENGINES.iter().map(|e| (e.name(), first_sentence(e.about()))).collect()),
        ("Report formats", FORMATS.iter().map(|f| (f.name, f.about.to_owned())).collect()),
        ("Export formats", EXPORTS.iter().map(|f| (f.name, f.about.to_owned())).collect()),
        ("Figures and verdicts", TERMS.iter().map(|t| (t.word, first_sentence(t.about))).collect()),
    ]
}

fn all(columns: usize) -> String {
    let mut text = String::new();
    for (title, entries) in sections() {
        let _ = writeln!(text, "{title}");
        let wide = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(NAMES);
        for (name, summary) in entries {
            let mut begins = format!("  {name:<wide$} ");
            for line in wrapped(&summary, columns.saturating_sub(wide + 3).max(40)) {
                let _ = writeln!(text, "{}", format!("{begins}{line}").trim_end());
                begins = " ".repeat(wide + 3);
            }
        }
        let _ = writeln!(text);
    }
    let _ = writeln!(text, "Checks: {} of them; `tactus audit --list` lists them", audit::all().count());
    text
}

fn one(name: &str) -> Option<String> {
    let mut text = String::new();
    // qemu and podman are environments too: both are told.
    let generator = generate::find(name);
    let engine = tactus_fleet::find(name);
    if let Some(environment) = environment::find(name) {
        let _ = writeln!(text, "{name}: an environment\n\n{}", wrapped(environment.about(), 96).join("\n"));
        if !environment.options().is_empty() {
            let _ = writeln!(text, "\nKeys of its table in a plan, beside kind, cpus, inside and attach:");
            for option in environment.options() {
                described(&mut text, option.name, option.about);
            }
        }
    } else if catalogue::find(name).next().is_some() {
        // A measurement and a load may share a word.
        text = catalogue::find(name).map(word).collect::<Vec<_>>().join("\n");
    } else if let Some(study) = study(name) {
        let about =
            parse(&Source::new(name, study.text)).ok().and_then(|plan| plan.about).unwrap_or_default();
        let _ = writeln!(text, "{name}: {}\n\n{about}\nIts plan:\n\n{}", title(name, study.text), study.text);
    } else if let Some(check) = audit::find(name) {
        text = self::check(check);
    } else if let Some(format) = FORMATS.iter().find(|format| format.name == name) {
        let _ = writeln!(text, "{name}: a report format\n\n{}", wrapped(format.about, 96).join("\n"));
    } else if let Some(format) = EXPORTS.iter().find(|format| format.name == name) {
        let _ = writeln!(text, "{name}: an export format\n\n{}", wrapped(format.about, 96).join("\n"));
        let _ = writeln!(text, "\nNot in this format: {}.", format.cannot);
    } else if let Some(term) = glossary::find(name) {
        let _ = writeln!(text, "{}\n\n{}", term.word, wrapped(term.about, 96).join("\n"));
    } else if generator.is_none() && engine.is_none() {
        return None;
    }
    if let Some(generator) = generator {
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(
            text,
            "{gap}{name}: a generator, `tactus tune files {name}`\n\n{}",
            wrapped(generator.about, 96).join("\n")
        );
    }
    if let Some(engine) = engine {
        let gap = if text.is_empty() { "" } else { "\n" };
        let about = wrapped(engine.about(), 96).join("\n");
        let _ = writeln!(text, "{gap}{name}: an engine, `tactus fleet run PLAN --on {name}`\n\n{about}");
        let _ = writeln!(text, "\nWhat --with takes:");
        for option in engine.options() {
            described(&mut text, option.name, option.about);
        }
    }
    Some(text)
}

/// A key and what it says, in columns.
fn described(text: &mut String, name: &str, about: &str) {
    let mut begins = format!("  {name:<14} ");
    for line in wrapped(about, 80) {
        let _ = writeln!(text, "{begins}{line}");
        begins = " ".repeat(17);
    }
}

/// A measurement, load or fault in full.
fn word(entry: &Entry) -> String {
    let mut text = format!("{}: {}, {}\n", entry.name, entry.family.title(), entry.summary);
    for paragraph in entry.text() {
        let _ = writeln!(text, "\n{}", wrapped(&paragraph, 96).join("\n"));
    }
    if !entry.items.is_empty() {
        let _ = writeln!(text, "\nIts values:");
    }
    for item in entry.items {
        let _ = writeln!(text, "  {}, in {}", item.name, item.unit);
        for line in wrapped(item.about, 90) {
            let _ = writeln!(text, "    {line}");
        }
    }
    let keys =
        if entry.parameters.is_empty() { "Its table has no keys." } else { "Keys of its table in a plan:" };
    let _ = writeln!(text, "\n{keys}");
    for parameter in entry.parameters {
        let _ = writeln!(text, "  {:<11} {}", parameter.key, parameter.takes());
        for line in wrapped(&parameter.about(), 82) {
            let _ = writeln!(text, "  {:<11} {line}", "");
        }
    }
    text
}

/// An entry of the audit's catalogue in full.
fn check(check: &Check) -> String {
    let mut text = format!("{}: a check, {}\n\n", check.id, check.title);
    for (name, value) in check.fields() {
        for (n, line) in wrapped(&value, 84).iter().enumerate() {
            let _ = writeln!(text, "  {:<12}{line}", if n == 0 { name } else { "" });
        }
    }
    if text.contains("ISOLATED") || text.contains("HOUSEKEEPING") {
        let _ =
            writeln!(text, "\nISOLATED and HOUSEKEEPING are CPUs of the machine: `tactus audit` names them.");
    }
    text
}

fn title(name: &str, text: &str) -> String {
    parse(&Source::new(name, text)).ok().and_then(|plan| plan.title).unwrap_or_default()
}

fn first_sentence(text: &str) -> String {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.').replace('\n', " ")
}
