//! `tactus fleet show DATA`.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use tactus_data::DataSet;
use tactus_data::question::{Answers, Asked, FORMATS, Fleet, Set, ask, page};
use tactus_report::part::Reader;
use tactus_report::render::text::{self, Style};
use tactus_system::{Real, System};

use crate::cli::FleetShow;
use crate::commands::written_as::written_as;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

/// Longest list of machines, in bytes.
const LONGEST: u64 = 16 << 20;

pub fn show(arguments: &FleetShow) -> Result<Exit, Failure> {
    let name =
        written_as(arguments.json, arguments.format.as_deref(), Some(&arguments.out)).unwrap_or("text");
    let Some(format) = FORMATS.iter().find(|format| format.name == name) else {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        return Err(Failure::say(
            format!("`{name}` is not a format of fleets"),
            format!("use one of {}", known.join(", ")),
        ));
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let asked = Asked {
        max_ns: arguments.max.map(|max| max.0),
        worst: arguments.worst,
        days: arguments.days,
        missing_after: arguments.missing_after,
        expect: arguments.expect.as_deref().map(expected).transpose()?.unwrap_or_default(),
        ..Asked::at(now)
    };
    let set = Set::read(&DataSet::open(&arguments.data)?)?;
    let answers = ask(&set, &asked);
    let stdout = arguments.out.as_os_str() == "-";
    if stdout && format.name == "text" {
        let style = Style { colour: output::colour(), width: output::width() };
        output::data(&text::chapters(&page(&answers, Reader::Terminal), style))?;
    } else {
        let bytes =
            (format.render)(&answers).map_err(|error| Failure::say(error.to_string(), error.hint()))?;
        if stdout {
            output::bytes(&bytes)?;
        } else {
            super::super::report::to_file(&arguments.out, &bytes)?;
            say(format_args!("fleet: {}", arguments.out.display()));
        }
    }
    Ok(exit(&answers))
}

/// A machine that missed is a finding; where it cannot be said of one whether it holds, nothing is said of all.
const fn exit(answers: &Answers) -> Exit {
    match answers.outcome {
        Fleet::Missed => Exit::Findings,
        Fleet::NotDecided => Exit::Inconclusive,
        Fleet::Held | Fleet::NoDeadline => Exit::Good,
    }
}

/// The names in a file.
fn expected(path: &Path) -> Result<Vec<String>, Failure> {
    let wrong = |error: io::Error| {
        Failure::say(
            format!("{}: {error}", path.display()),
            "name a file with the name or key of one machine in each line",
        )
    };
    let bytes = Real.read_at_most(path, LONGEST).map_err(wrong)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let names = text.lines().map(|line| line.split('#').next().unwrap_or("").trim().to_owned());
    Ok(names.filter(|name| !name.is_empty()).collect())
}
