//! A bundle in the formats of other tools.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tactus_bundle::{self as bundle, Logs, Trust};
use tactus_format::export::{self, EXPORTS, ExportError, Options, Part, Source};
use tactus_report::document;
use tactus_system::Directory;

use crate::cli::Convert;
use crate::commands::only::chosen;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

/// Writes a bundle in this format, to where `--out` says.
pub fn export(path: &Path, to: &str, arguments: &Convert) -> Result<Exit, Failure> {
    let Some(format) = EXPORTS.iter().find(|format| format.name == to) else {
        let known: Vec<&str> = EXPORTS.iter().map(|format| format.name).collect();
        return Err(Failure::say(
            format!("`{to}` is not a format that tactus writes"),
            format!("use one of {}; `tactus report` writes reports", known.join(", ")),
        ));
    };
    let trust = if arguments.damaged { Trust::Damaged } else { Trust::Whole };
    let (mut contents, logs) = bundle::read_with_logs(&bundle::open(path)?, trust)?;
    for sentence in &contents.damage {
        say(format_args!("warning: {sentence}"));
    }
    let stays = chosen(&[&contents], &arguments.only)?;
    let numbers: Vec<usize> =
        (0..).zip(&contents.rows).filter(|(_, row)| stays(row)).map(|(number, _)| number).collect();
    contents.rows.retain(&stays);
    let document = document(&contents);
    let logs = RowLogs(logs);
    let source = Source { contents: &contents, document: &document, numbers: &numbers, logs: &logs };
    let options = Options {
        unit_ns: arguments.unit.map(crate::cli::Unit::ns),
        histogram: arguments.histogram,
        ..Options::default()
    };
    let parts = format.parts(&source);
    for note in format.notes(&source, options) {
        say(format_args!("note: {note}"));
    }
    if parts.is_empty() {
        return Err(Failure::say(
            format!("{} contains nothing that can be written as {}", path.display(), format.name),
            "csv, parquet and openmetrics can hold everything in a bundle",
        ));
    }
    let place = place(format, &parts, arguments.out.as_deref())?;
    for part in &parts {
        let write = |out: export::Out<'_>| format.write(&source, part, options, out);
        match &place {
            Place::Stdout => {
                let mut stdout = output::Stdout::default();
                let written = write(Box::new(&mut stdout)).and_then(|()| Ok(stdout.flush()?));
                if !stdout.was_left() {
                    written.map_err(|error| unwritten(Path::new("standard output"), &error))?;
                }
            }
            Place::Directory(dir) => {
                let path = dir.path().join(&part.name);
                to_file(dir, OsStr::new(&part.name), write).map_err(|error| unwritten(&path, &error))?;
                say(format_args!("written: {}", path.display()));
            }
            Place::File(dir, name) => {
                let path = dir.path().join(name);
                to_file(dir, name, write).map_err(|error| unwritten(&path, &error))?;
                say(format_args!("written: {}", path.display()));
            }
        }
    }
    Ok(Exit::Good)
}

/// Where it goes.
enum Place {
    Stdout,
    Directory(Directory),
    File(Directory, PathBuf),
}

/// A directory for what is several files; one that is there already takes a single one, too.
fn place(format: &export::Export, parts: &[Part<'_>], out: Option<&Path>) -> Result<Place, Failure> {
    let single = parts.len() == 1 && !format.is_directory();
    let unable = |path: &Path, error: &io::Error| {
        Failure::say(format!("{}: {error}", path.display()), "name a writable directory or file with --out")
    };
    let Some(out) = out.filter(|out| out.as_os_str() != "-") else {
        return if single {
            Ok(Place::Stdout)
        } else {
            let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
            Err(Failure::say(
                format!("it becomes {} files: {}", names.len(), names.join(", ")),
                "name a directory with --out DIR, or one scenario with --only",
            ))
        };
    };
    if !single || Directory::open(out).is_ok() {
        return output::directory(out).map(Place::Directory).map_err(|error| unable(out, &error));
    }
    let name = out.file_name().ok_or_else(|| unable(out, &io::ErrorKind::IsADirectory.into()))?;
    let above =
        output::directory(out.parent().unwrap_or(Path::new(""))).map_err(|error| unable(out, &error))?;
    Ok(Place::File(above, name.into()))
}

/// Writes a file as it comes, of whatever length, and puts it in its place when it is whole.
fn to_file(
    dir: &Directory,
    name: impl AsRef<Path>,
    write: impl FnOnce(export::Out<'_>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    dir.install_with(name, 0o644, |file: &mut File| write(Box::new(file)))
}

fn unwritten(path: &Path, error: &ExportError) -> Failure {
    Failure::say(
        format!("{}: {error}", path.display()),
        "name a writable file or directory with --out; is the disk full?",
    )
}

/// The logs of a bundle.
struct RowLogs(Logs);

impl export::Logs for RowLogs {
    fn ticks(&self, row: usize, take: &mut export::TakeTick<'_>) -> io::Result<bool> {
        self.0.ticks(row, take)
    }

    fn intervals(&self, row: usize, take: &mut export::TakeInterval<'_>) -> io::Result<()> {
        self.0.intervals(row, take)
    }
}
