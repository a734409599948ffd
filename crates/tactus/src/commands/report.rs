//! `tactus report BUNDLE`.

use std::io::Write;
use std::path::{Path, PathBuf};

use tactus_report::render::{FORMATS, Format};

use crate::cli::Report;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

pub fn report(arguments: &Report) -> Result<Exit, Failure> {
    let Some(format) = FORMATS.iter().find(|format| format.name == arguments.format) else {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        return Err(Failure::say(
            format!("`{}` is not a report format", arguments.format),
            format!("use one of {}", known.join(", ")),
        ));
    };
    let contents = super::show::read(&arguments.bundle, arguments.damaged)?;
    let bytes = draw(format, &contents)?;
    let out = match &arguments.out {
        Some(out) if out.as_os_str() == "-" => None,
        Some(out) => Some(out.clone()),
        None if format.name == "html" => Some(arguments.bundle.join("report.html")),
        None => None,
    };
    match out {
        Some(path) => {
            write(&path, &bytes)?;
            say(format_args!("report: {}", path.display()));
        }
        None => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(&bytes)?;
            stdout.flush()?;
        }
    }
    Ok(Exit::Good)
}

/// Writes `report.html` beside the bundle's files and returns its path.
pub fn html(dir: &Path, contents: &tactus_model::bundle::Contents) -> Result<PathBuf, Failure> {
    let format = FORMATS.iter().find(|format| format.name == "html");
    let format = format
        .ok_or_else(|| Failure::say("there is no html format", "this is a fault of tactus: report it"))?;
    let path = dir.join("report.html");
    write(&path, &draw(format, contents)?)?;
    Ok(path)
}

fn draw(format: &Format, contents: &tactus_model::bundle::Contents) -> Result<Vec<u8>, Failure> {
    (format.render)(contents).map_err(|error| Failure::say(error.to_string(), error.hint()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    output::file_at(path, bytes, 0o644).map_err(|error| {
        Failure::say(
            format!("{}: {error}", path.display()),
            "name a file that can be written with --out FILE; `--out -` is the standard output",
        )
    })
}
