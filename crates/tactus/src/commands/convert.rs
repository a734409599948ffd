//! `tactus convert`: files of other tools become a bundle, and a bundle becomes files that other tools read (`--to`).

mod export;
mod import;

use std::path::Path;

use tactus_bundle::Location;
use tactus_format::export::EXPORTS;
use tactus_format::import::{Declared, FORMATS};
use tactus_report::render::text::{Style, render};
use tactus_report::units::wrapped;
use tactus_system::Directory;

use super::run::location;
use crate::cli::Convert;
use crate::exit::{CACHE_HINT, Exit, Failure};
use crate::output;
use crate::say::say;

pub fn convert(arguments: &Convert) -> Result<Exit, Failure> {
    match (&arguments.to, &arguments.inputs[..]) {
        _ if arguments.formats => {
            output::data(&formats())?;
            Ok(Exit::Good)
        }
        (None, _) => {
            let (dir, contents) = import::import(arguments, location(arguments.out.as_deref(), "import"))?;
            output::data(&render(&contents, Style { colour: output::colour(), width: output::width() }))?;
            say(format_args!("bundle: {}", dir.path().display()));
            Ok(Exit::of(&contents))
        }
        (Some(to), [bundle]) if Directory::open(bundle).is_ok() => export::export(bundle, to, arguments),
        (Some(to), [_]) => through(to, arguments),
        (Some(to), several) => Err(Failure::say(
            format!("--to {to} takes one bundle or file, not {}", several.len()),
            "convert them one by one; or first put files of other tools into one bundle, without --to",
        )),
    }
}

/// From a file of one tool to a file of another: by a bundle that is not kept.
fn through(to: &str, arguments: &Convert) -> Result<Exit, Failure> {
    let unmade =
        |error: std::io::Error| Failure::say(format!("the directory cannot be created: {error}"), CACHE_HINT);
    let above = tempfile::tempdir().map_err(unmade)?;
    let bundle = above.path().join("bundle");
    import::import(arguments, Location::from(Path::new(&bundle)))?;
    export::export(&bundle, to, arguments)
}

/// Every format that is read, with the command that makes it; and every one that is written.
fn formats() -> String {
    let read = |one: &Declared| {
        format!(
            "{}: {}\n  made by: {}\n  unit: {}\n  missing: {}\n",
            one.tool, one.what, one.made_by, one.unit, one.lacks
        )
    };
    let written = EXPORTS.iter().map(|format| {
        let about = wrapped(format.about, 70).join(&format!("\n{:24}", ""));
        format!("  {:<22}{about}\n", format.name)
    });
    format!(
        "Formats that tactus reads: `tactus convert FILE`\n\n{}\nFormats that tactus writes: `tactus convert \
            BUNDLE --to FORMAT`\n\n{}",
        FORMATS.iter().map(read).collect::<Vec<_>>().join("\n"),
        written.collect::<String>()
    )
}
