//! `tactus run [STUDY|PLAN]`.

use std::path::{Path, PathBuf};

use tactus_host::plan::{Choices, STUDIES, Source, parse, study, this_machine};
use tactus_host::system::Real;
use tactus_model::plan::Plan;
use tactus_report::analysis::document;
use tactus_report::render::text::{Style, render};

use super::perform::{exit, perform, prepare};
use crate::cli::Run;
use crate::exit::{Exit, Failure};
use crate::live::Progress;
use crate::output;

pub fn run(arguments: &Run) -> Result<Exit, Failure> {
    let (plan, source) = plan(arguments.plan.as_deref())?;
    let choices = Choices {
        quick: arguments.quick,
        duration: arguments.duration,
        only: arguments.only.clone(),
        no_side_effects: arguments.no_side_effects,
    };
    let resolved = prepare(&plan, &source, &choices)?;
    let out = arguments.out.clone().unwrap_or_else(|| default_dir(&plan.name));
    let mut progress = Progress::new(&resolved);
    let performed = perform(&resolved, &out, &mut progress)?;
    let report = super::report::html(&performed.dir, &performed.contents)?;
    if arguments.json {
        output::json(&document(&performed.contents))?;
        eprintln!("report: {}", report.display());
    } else {
        let table = render(&performed.contents, Style { colour: output::colour(), width: output::width() });
        output::data(&format!("{table}\nreport: {}\n", report.display()))?;
    }
    Ok(exit(&performed.contents))
}

/// The plan that the user named: none, a study, or a file.
fn plan(name: Option<&str>) -> Result<(Plan, Source), Failure> {
    let Some(name) = name else {
        let plan = this_machine(&Real);
        return Ok((plan, Source::new("this machine", "")));
    };
    if let Some(study) = study(name) {
        let source = Source::new(study.name, study.text);
        return Ok((parse(&source)?, source));
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        let studies: Vec<&str> = STUDIES.iter().map(|study| study.name).collect();
        let looks_like_a_file = Path::new(name).extension().is_some() || name.contains('/');
        let what = if looks_like_a_file {
            format!("{name}: {error}")
        } else {
            format!("`{name}` is neither a study nor a plan file")
        };
        Failure::say(
            what,
            format!("studies are {}; a plan is a TOML file (`tactus explain`)", studies.join(", ")),
        )
    })?;
    let source = Source::new(name, text);
    Ok((parse(&source)?, source))
}

/// `./tactus-PLAN-TIME`, with the local time.
fn default_dir(plan: &str) -> PathBuf {
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    PathBuf::from(format!("tactus-{}-{now}", tactus_model::bundle::slug(plan)))
}
