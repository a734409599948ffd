//! `tactus report [BUNDLE]`: text in a terminal, a page, and the other formats.

mod certificate;
mod fitness;
mod sign;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tactus_bundle::{self as bundle, Trust};
use tactus_model::bundle::Contents;
use tactus_model::document::CompareDocument;
use tactus_report::certificate::Given;
use tactus_report::render::text::{Style, render};
use tactus_report::render::{FORMATS, Format, junit};
use tactus_report::units::clean;
use tactus_run::Executed;
use tactus_system::{Directory, Invocation, Real, System};

use super::execute::interrupted;
use super::only::only;
use super::written_as::written_as;
use crate::cli::Report;
use crate::exit::{Exit, Failure};
use crate::newest;
use crate::output;
use crate::say::{say, typed};

/// The format of the page.
const HTML: &str = "html";
/// The format that has a comparison, too.
const JUNIT: &str = "junit";
/// The page beside the files of a bundle.
const PAGE: &str = "report.html";

pub fn report(arguments: &Report) -> Result<Exit, Failure> {
    let asked = match arguments.html || arguments.open {
        true => Some(HTML),
        false => written_as(arguments.json, arguments.format.as_deref(), arguments.out.as_deref()),
    };
    let format = asked.map(format).transpose()?;
    let bundle = bundle::open(&newest::bundle(arguments.bundle.as_deref())?)?;
    if !arguments.class.is_empty() {
        return fitness::fitness(&bundle, arguments);
    }
    if arguments.verify {
        return sign::verify(&bundle, arguments.signers.as_deref());
    }
    if arguments.certificate {
        let given = Given {
            title: arguments.title.clone(),
            customer: arguments.customer.clone(),
            site: arguments.site.clone(),
            operator: arguments.operator.clone(),
            serial: arguments.serial.clone(),
        };
        let written = certificate::certificate(&bundle, &given, arguments.out.as_deref())?;
        return arguments.sign.as_deref().map_or(Ok(written), |key| sign::sign(&bundle, key));
    }
    if let Some(key) = &arguments.sign {
        return sign::sign(&bundle, key);
    }
    let mut contents = read(&bundle, arguments.damaged)?;
    only(&mut [&mut contents], &arguments.only)?;
    contents.raw = arguments.raw;
    match (format, arguments.out.as_deref().filter(|out| out.as_os_str() != "-")) {
        (format, Some(out)) => {
            to_file(out, &draw(format.unwrap_or(self::format("text")?), &contents)?)?;
            say(format_args!("report: {}", out.display()));
            if arguments.open {
                open(out)?;
            }
        }
        (Some(format), None) if format.name == HTML && arguments.out.is_none() => {
            let page = write(&bundle, &draw(format, &contents)?)?;
            say(format_args!("report: {}", page.display()));
            if arguments.open {
                open(&page)?;
            }
        }
        (Some(format), None) => print(format, &contents)?,
        (None, None) => {
            output::data(&render(&contents, Style { colour: output::colour(), width: output::width() }))?;
            if bundle.entry(bundle::LOG).is_ok() {
                let log = bundle.path().join(bundle::LOG);
                say(format_args!("note: {} is the log of the run", log.display()));
            }
        }
    }
    Ok(Exit::Good)
}

/// Reads a bundle and says on stderr what is wrong with it.
pub fn read(dir: &Directory, damaged: bool) -> Result<Contents, Failure> {
    let trust = if damaged { Trust::Damaged } else { Trust::Whole };
    let contents = bundle::read_from(dir, trust)?;
    for sentence in &contents.damage {
        say(format_args!("warning: {sentence}"));
    }
    Ok(contents)
}

/// The format of this name.
pub fn format(name: &str) -> Result<&'static Format, Failure> {
    FORMATS.iter().find(|format| format.name == name).ok_or_else(|| {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        Failure::say(format!("`{name}` is not a report format"), format!("use one of {}", known.join(", ")))
    })
}

/// Prints a bundle in a format.
pub fn print(format: &Format, contents: &Contents) -> Result<(), Failure> {
    Ok(output::bytes(&draw(format, contents)?)?)
}

/// The program that opens files by their kind on a desktop.
const OPENER: &str = "xdg-open";

/// Shows a page to the user.
fn open(page: &Path) -> Result<(), Failure> {
    let failed = |why: String| {
        Failure::say(format!("the page cannot be opened: {why}"), "open it in a browser yourself")
    };
    if Real.find_program(OPENER).is_none() {
        return Err(failed(format!("{OPENER} is not installed")));
    }
    // A name that begins with a dash would be an option.
    let page = std::path::absolute(page).map_err(|error| failed(error.to_string()))?;
    let command = Invocation::new([OPENER.to_owned(), page.display().to_string()]).within(PATIENCE);
    let ended = Real.run(&command).map_err(|error| failed(error.to_string()))?;
    if ended.success() { Ok(()) } else { Err(failed(ended.words())) }
}

/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ends a run: its page is written beside the bundle's files, and what was measured is printed; JUnit has the comparison
/// with a baseline, too.
pub fn after(
    run: &Executed,
    as_format: Option<&Format>,
    table: impl Fn(&Contents, Style) -> String,
    comparison: Option<&CompareDocument>,
) -> Result<(), Failure> {
    let path = run.dir.path().join(PAGE);
    let said = match run.dir.replace(PAGE, &draw(format(HTML)?, &run.contents)?) {
        Ok(()) => format!("page: {}", path.display()),
        // The bundle itself is complete all the same.
        Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            let bundle = typed(run.dir.path());
            format!(
                "no page: {}: {error}; free some space, then run `tactus report {bundle}`",
                path.display()
            )
        }
        Err(error) => return Err(unwritten(&path, &error)),
    };
    if let Some(format) = as_format {
        let printed = match comparison.filter(|_| format.name == JUNIT) {
            Some(document) => junit::with_comparison(&run.contents, document)
                .map_err(|error| Failure::say(error.to_string(), error.hint()))
                .and_then(|xml| Ok(output::bytes(xml.as_bytes())?)),
            None => print(format, &run.contents),
        };
        say(said);
        printed?;
    } else {
        let table = table(&run.contents, Style { colour: output::colour(), width: output::width() });
        output::data(&format!("{table}{}\n", clean(&said)))?;
    }
    if let Some(sentence) = interrupted(run) {
        say(sentence);
    }
    Ok(())
}

fn draw(format: &Format, contents: &Contents) -> Result<Vec<u8>, Failure> {
    (format.render)(contents).map_err(|error| Failure::say(error.to_string(), error.hint()))
}

/// Writes the page into the directory that the bundle was read from, and returns its path.
fn write(bundle: &Directory, page: &[u8]) -> Result<PathBuf, Failure> {
    let path = bundle.path().join(PAGE);
    bundle.replace(PAGE, page).map_err(|error| unwritten(&path, &error))?;
    Ok(path)
}

/// Writes a file that the user named.
pub fn to_file(out: &Path, bytes: &[u8]) -> Result<(), Failure> {
    output::file_at(out, bytes, 0o644).map_err(|error| unwritten(out, &error))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::say(
        format!("{}: {error}", path.display()),
        "name a writable file with --out FILE; `--out -` is stdout",
    )
}
