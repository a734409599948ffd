//! `tactus compare`.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use tactus_bundle as bundle;
use tactus_model::bundle::Contents;
use tactus_model::document::{CompareDocument, Judgement};
use tactus_report::compare::{
    Condition, FORMATS, Format, Margins, Options, against_itself, compare as held, page,
};
use tactus_report::part::Reader;
use tactus_report::render::text::{self, Style};
use tactus_report::units::clean;
use tactus_system::{Directory, Kind};

use super::only::only;
use super::written_as::written_as;
use crate::cli::Compare;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

/// A file that every bundle contains.
const MANIFEST: &str = "manifest.json";

pub fn compare(arguments: &Compare) -> Result<Exit, Failure> {
    let name =
        written_as(arguments.json, arguments.format.as_deref(), Some(&arguments.out)).unwrap_or("text");
    let Some(format) = FORMATS.iter().find(|format| format.name == name) else {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        return Err(Failure::say(
            format!("`{name}` is not a format of comparisons"),
            format!("use one of {}", known.join(", ")),
        ));
    };
    let margins = arguments.margin.iter().try_fold(Margins::default(), |margins, text| margins.with(text));
    let margins = margins.map_err(|error| {
        Failure::new(
            error,
            "write p50, p99, p99.9, maximum or values, and a percentage from 1 to 1000: `--margin p99=15%`",
        )
    })?;
    many_enough(arguments)?;
    let mut all: Vec<(String, Vec<Contents>)> = Vec::new();
    for (path, name) in arguments.conditions.iter().zip(names(arguments)?) {
        all.push((name, bundles(path)?));
    }
    no_copies(&all)?;
    let mut every: Vec<&mut Contents> = all.iter_mut().flat_map(|(_, bundles)| bundles).collect();
    only(&mut every, &arguments.only)?;
    let condition = |(name, bundles)| Condition::new(name, bundles).with_emulated(arguments.judge_emulated);
    let conditions: Vec<Condition> = all.into_iter().map(condition).collect();
    let document = match conditions.as_slice() {
        [base] => against_itself(base, &margins),
        all => held(all, &Options { margins, gate: arguments.gate, explore: arguments.all }),
    };
    if !arguments.itself && document.scenarios.is_empty() {
        return Err(nothing_in_common());
    }
    write(format, &document, &conditions, &arguments.out)?;
    let judges = arguments.gate || arguments.itself;
    Ok(if judges { judged(document.outcome) } else { Exit::Good })
}

/// A copy of a bundle is no sitting: it would show that sittings do not differ.
fn no_copies(all: &[(String, Vec<Contents>)]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    let bundles = || all.iter().flat_map(|(name, bundles)| bundles.iter().map(move |one| (name, one)));
    let signed = |(_, one): &(&String, &Contents)| !one.manifest.files.is_empty();
    match bundles().filter(signed).find(|(_, one)| !seen.insert(&one.manifest.files)) {
        None => Ok(()),
        Some((name, one)) => Err(Failure::say(
            format!(
                "{name} has a copy of a bundle that is named already (begun {})",
                clean(&one.manifest.started)
            ),
            "remove the copy: one bundle is one sitting",
        )),
    }
}

fn many_enough(arguments: &Compare) -> Result<(), Failure> {
    match (arguments.itself, arguments.conditions.len()) {
        (true, 1) | (false, 2..) => Ok(()),
        (true, _) => Err(Failure::say(
            "--self takes one baseline",
            "name a directory of 6 bundles of 5 repeats or more: `tactus compare --self BASE`",
        )),
        (false, _) => Err(Failure::say(
            "compare takes two bundles or more",
            "name the base first, then the bundles to compare: `tactus compare BASE NEW`; compare a baseline \
             with itself by `tactus compare --self BASE`",
        )),
    }
}

/// The name of each condition: the last part of its path, or the whole path if two of them end alike.
fn names(arguments: &Compare) -> Result<Vec<String>, Failure> {
    let paths: Vec<String> = arguments.conditions.iter().map(|path| path.display().to_string()).collect();
    if let Some(twice) =
        paths.iter().enumerate().find_map(|(n, path)| paths[..n].contains(path).then_some(path))
    {
        return Err(Failure::say(
            format!("`{twice}` is named twice"),
            "name another bundle; `tactus compare --self BASELINE` compares the halves of a baseline",
        ));
    }
    let last = |path: &std::path::PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let short: Vec<Option<String>> = arguments.conditions.iter().map(last).collect();
    let distinct: BTreeSet<&Option<String>> = short.iter().collect();
    let known = short.iter().all(Option::is_some) && distinct.len() == short.len();
    Ok(if known { short.into_iter().flatten().collect() } else { paths })
}

/// A bundle, or all bundles of a directory; other entries are left alone.
fn bundles(path: &Path) -> Result<Vec<Contents>, Failure> {
    let dir = bundle::open(path)?;
    if dir.entry(MANIFEST).is_ok() {
        return Ok(vec![reduced(&dir)?]);
    }
    let wrong =
        |error: io::Error| Failure::from(anyhow::Error::new(error).context(path.display().to_string()));
    let mut bundles = Vec::new();
    for name in dir.names().map_err(wrong)? {
        if dir.entry(&name).map_err(wrong)?.kind != Kind::Directory {
            continue;
        }
        // Not all of them are open at once: there may be more than a process may open.
        let inside = dir.beneath(&name).map_err(wrong)?;
        if inside.entry(MANIFEST).is_ok() {
            bundles.push(reduced(&inside)?);
        }
    }
    if bundles.is_empty() {
        return Err(Failure::say(
            format!("{} is not a bundle, and contains none", path.display()),
            "name a directory that `tactus run` or `tactus measure` wrote, or one that contains such \
                directories",
        ));
    }
    Ok(bundles)
}

/// The parts of a bundle that are compared: keeping all of many bundles would need the memory for their sum.
pub fn reduced(dir: &Directory) -> Result<Contents, Failure> {
    let mut contents = super::report::read(dir, false)?;
    Condition::reduce(&mut contents);
    Ok(contents)
}

/// The result of a comparison.
pub struct Gated {
    /// All of it.
    pub document: CompareDocument,
    /// For a terminal.
    pub text: String,
    /// How the program ends for it.
    pub exit: Exit,
}

/// Compares a bundle with the sittings of a baseline as a regression gate, with the usual margins; all are [`reduced`].
pub fn gate(base: (String, Vec<Contents>), new: (String, Contents)) -> Result<Gated, Failure> {
    let conditions = [Condition::new(base.0, base.1), Condition::new(new.0, vec![new.1])];
    let document = held(&conditions, &Options { margins: Margins::default(), gate: true, explore: false });
    if document.scenarios.is_empty() {
        return Err(nothing_in_common());
    }
    let style = Style { colour: output::colour(), width: output::width() };
    let text = text::chapters(&page(&document, &conditions, Reader::Terminal), style);
    let exit = judged(document.outcome);
    Ok(Gated { document, text, exit })
}

fn nothing_in_common() -> Failure {
    Failure::say(
        "the bundles have no scenario in common",
        "scenarios are matched by name, environment and measurement: `tactus report BUNDLE` lists those of a \
         bundle. Imported scenarios have the name of their file, or that of `tactus convert --name`",
    )
}

const fn judged(outcome: Judgement) -> Exit {
    match outcome {
        Judgement::Pass => Exit::Good,
        Judgement::Regression => Exit::Findings,
        Judgement::Inconclusive => Exit::Inconclusive,
    }
}

fn write(
    format: &Format,
    document: &CompareDocument,
    conditions: &[Condition],
    out: &Path,
) -> Result<(), Failure> {
    let stdout = out.as_os_str() == "-";
    if stdout && format.name == "text" {
        let style = Style { colour: output::colour(), width: output::width() };
        output::data(&text::chapters(&page(document, conditions, Reader::Terminal), style))?;
        return Ok(());
    }
    let bytes = (format.render)(document, conditions)
        .map_err(|error| Failure::say(error.to_string(), error.hint()))?;
    if stdout {
        output::bytes(&bytes)?;
    } else {
        super::report::to_file(out, &bytes)?;
        say(format_args!("comparison: {}", out.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_ends_by_what_it_judges() {
        use Judgement::{Inconclusive, Pass, Regression};
        let ends = [Pass, Regression, Inconclusive].map(judged);
        assert_eq!(ends, [Exit::Good, Exit::Findings, Exit::Inconclusive]);
    }
}
