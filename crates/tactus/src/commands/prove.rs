//! `tactus prove`: what is each setting worth on this machine?

use std::fmt::Write;

use tactus_audit::{Intent, Subject};
use tactus_environment as environment;
use tactus_model::Nanos;
use tactus_model::cpus::CpuRequest;
use tactus_model::plan::Plan;
use tactus_report::document;
use tactus_report::render::text::{Style, worth};
use tactus_run::Destination;
use tactus_run::plan::{Choices, Source};
use tactus_run::prove::{Request, plan};

use super::execute::{prepare, run as execute};
use super::facts;
use super::run::default_dir;
use super::seed;
use crate::cli::Prove;
use crate::exit::{Exit, Failure};
use crate::live::Progress;
use crate::output;

/// What `--quick` measures each time.
const QUICK: Nanos = Nanos::from_secs(1);

pub fn prove(arguments: &Prove) -> Result<Exit, Failure> {
    if let Some(id) = arguments.ids.iter().find(|id| tactus_audit::find(id).is_none()) {
        return Err(Failure::say(
            format!("there is no check `{id}`"),
            "`tactus audit --list` lists them all",
        ));
    }
    let plan = designed(arguments)?;
    if plan.scenario.is_empty() {
        return nothing(&plan);
    }
    let resolved = prepare(&plan, &Source::new("tactus prove", ""), &Choices::default())?;
    let about = tactus_report::units::duration(resolved.expected_ns());
    if arguments.dry_run {
        return dry(&plan, &about);
    }
    let tested = plan.proof.iter().filter(|proof| proof.reason.is_none()).count();
    eprintln!("{tested} settings in {} measurements: about {about}, and starting up", plan.scenario.len());
    let out = arguments.out.clone().unwrap_or_else(|| default_dir(&plan.name));
    let progress = Progress::new(&resolved);
    let executed = execute(&resolved, &Choices::default(), Destination::New(&out, &plan), progress)?;
    let report = super::report::html(&executed.dir, &executed.contents)?;
    if arguments.json {
        output::json(&document(&executed.contents))?;
        eprintln!("report: {}", report.display());
    } else {
        let table = worth(&executed.contents, Style { colour: output::colour(), width: output::width() });
        output::data(&format!("{table}\nreport: {}\n", report.display()))?;
    }
    Ok(Exit::of(&executed.contents))
}

/// The plan of pairs.
fn designed(arguments: &Prove) -> Result<Plan, Failure> {
    let kind = arguments.environment.as_str();
    let known = environment::find(kind).ok_or_else(|| {
        Failure::say(format!("there is no kind of environment `{kind}`"), "`tactus environments` lists them")
    })?;
    let mut spec = facts::described(kind, arguments.kernel.as_deref(), arguments.cmdline.as_deref());
    spec.cpus = arguments.cpus.clone().map(CpuRequest::List);
    let seen = facts::inside(&spec)?;
    let isolated = arguments.cpus.clone().filter(|_| !known.numbers_cpus());
    let intent = Intent { isolated, later: None, carrier: seen.carrier };
    // Settings are the kernel's, and a container shares its host's.
    let role = if known.numbers_cpus() { seen.role } else { tactus_model::finding::Role::Host };
    let subject = Subject::new(&seen.facts, role, &intent);
    let request = Request {
        ids: if arguments.all { Vec::new() } else { arguments.ids.clone() },
        name: kind.into(),
        environment: spec,
        pairs: arguments.pairs,
        duration: if arguments.quick { QUICK } else { arguments.duration },
        load: !arguments.idle,
        seed: seed::new(),
        boots: known.numbers_cpus(),
    };
    Ok(plan(&request, &subject))
}

/// None of the settings can be tested.
fn nothing(plan: &Plan) -> Result<Exit, Failure> {
    let mut reasons = String::new();
    for proof in &plan.proof {
        let _ = write!(reasons, "\n  {}: {}", proof.setting, proof.reason.as_deref().unwrap_or_default());
    }
    Err(Failure::say(
        format!("nothing can be tested here{reasons}"),
        "`tactus prove --all --dry-run` lists what can; boot parameters are tested with --in qemu",
    ))
}

fn dry(plan: &Plan, about: &str) -> Result<Exit, Failure> {
    let mut text = String::new();
    for proof in &plan.proof {
        let _ = match &proof.reason {
            Some(reason) => writeln!(text, "{:<24} not tested: {reason}", proof.setting),
            None => writeln!(text, "{:<24} {}", proof.setting, proof.what),
        };
    }
    let _ = writeln!(text, "\n{} measurements, about {about}, and starting up", plan.scenario.len());
    output::data(&text)?;
    Ok(Exit::Good)
}
