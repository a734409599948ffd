//! `tactus report BUNDLE`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tactus_bundle as bundle;
use tactus_model::bundle::Contents;
use tactus_report::document;
use tactus_report::render::text::Style;
use tactus_report::render::{FORMATS, Format};
use tactus_report::units::clean;
use tactus_run::Executed;
use tactus_system::Directory;

use crate::cli::Report;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

/// The page beside the files of a bundle.
const PAGE: &str = "report.html";

pub fn report(arguments: &Report) -> Result<Exit, Failure> {
    let Some(format) = FORMATS.iter().find(|format| format.name == arguments.format) else {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        return Err(Failure::say(
            format!("`{}` is not a report format", arguments.format),
            format!("use one of {}", known.join(", ")),
        ));
    };
    let bundle = bundle::open(&arguments.bundle)?;
    let contents = super::show::read(&bundle, arguments.damaged)?;
    let bytes = draw(format, &contents)?;
    match &arguments.out {
        Some(out) if out.as_os_str() != "-" => {
            to_file(out, &bytes)?;
            say(format_args!("report: {}", out.display()));
        }
        None if format.name == "html" => say(format_args!("report: {}", write(&bundle, &bytes)?.display())),
        _ => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&bytes)?;
            stdout.flush()?;
        }
    }
    Ok(Exit::Good)
}

/// Ends a run: its page is written beside the bundle's files, and what was measured is printed.
pub fn after(
    run: &Executed,
    as_json: bool,
    table: impl Fn(&Contents, Style) -> String,
) -> Result<Exit, Failure> {
    let format = FORMATS.iter().find(|format| format.name == "html");
    let format = format
        .ok_or_else(|| Failure::say("there is no html format", "this is a fault of tactus: report it"))?;
    let path = run.dir.path().join(PAGE);
    let said = match run.dir.replace(PAGE, &draw(format, &run.contents)?) {
        Ok(()) => format!("report: {}", path.display()),
        // What was measured is there all the same.
        Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            let bundle = run.dir.path().display();
            format!("no page: {}: {error}; make room, then `tactus report {bundle}`", path.display())
        }
        Err(error) => return Err(unwritten(&path, &error)),
    };
    if as_json {
        output::json(&document(&run.contents))?;
        say(said);
    } else {
        let table = table(&run.contents, Style { colour: output::colour(), width: output::width() });
        output::data(&format!("{table}\n{}\n", clean(&said)))?;
    }
    Ok(Exit::of(&run.contents))
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
        "name a file that can be written with --out FILE; `--out -` is the standard output",
    )
}
