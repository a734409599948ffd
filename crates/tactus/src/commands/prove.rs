//! `tactus prove`: what is each setting worth on this machine?

use std::fmt::Write;
use std::time::Instant;

use tactus_audit::{Intent, Subject};
use tactus_environment as environment;
use tactus_model::Nanos;
use tactus_model::cpus::CpuRequest;
use tactus_model::plan::Plan;
use tactus_report::render::text::worth;
use tactus_report::stats::PROVEN;
use tactus_run::Destination;
use tactus_run::plan::{Choices, Resolved, Source, may_be_real_time};
use tactus_run::prove::{Request, plan};
use tactus_statistics::{ERROR, detectable, least_pairs};
use tactus_system::Real;

use super::execute::{prepare, run as execute};
use super::facts;
use super::lock::lock;
use super::run::location;
use super::seed;
use crate::cli::Prove;
use crate::exit::{Exit, Failure};
use crate::live::Progress;
use crate::nearest;
use crate::output;
use crate::place::Place;
use crate::say::say;

/// The fewest pairs of a setting that are no mere look: fewer are exploratory.
const FEWEST: u32 = 10;
/// More pairs are not taken unasked.
const MOST: u32 = 60;
/// The effect that the usual number of pairs shows, in standard deviations of a pair's difference.
const TWO_SIGMA: f64 = 2.0;
/// The duration of each measurement with `--quick`.
const QUICK: Nanos = Nanos::from_secs(1);

pub fn prove(arguments: &Prove) -> Result<Exit, Failure> {
    if let Some(id) = arguments.ids.iter().find(|id| tactus_audit::find(id).is_none()) {
        return Err(Failure::say(
            format!("there is no check `{id}`"),
            nearest::hint(
                id,
                tactus_audit::all().map(|(_, check)| check.id),
                "`tactus audit --list` lists all checks",
            ),
        ));
    }
    let format = arguments.printed.word().map(super::report::format).transpose()?;
    let Designed { plan, pairs, start_ns } = designed(arguments)?;
    if plan.scenario.is_empty() {
        return nothing(&plan);
    }
    let told = power(&plan, pairs)?;
    let resolved = prepare(&plan, &Source::new("tactus prove", ""), &Choices::default())?;
    let about = tactus_report::units::duration(takes_ns(&resolved, start_ns));
    if arguments.dry_run {
        return dry(&plan, &about, &told);
    }
    if !may_be_real_time(&Real) {
        return Err(Failure::say(
            "`tactus prove` needs real-time threads, which this user may not have",
            "use sudo",
        ));
    }
    let turn = lock(&arguments.lock)?;
    let tested = tested(&plan);
    say(told);
    let settings = if tested == 1 { "setting" } else { "settings" };
    say(format_args!("{tested} {settings} in {} measurements: about {about}", plan.scenario.len()));
    let location = location(arguments.out.as_deref(), &plan.name);
    let progress = Progress::new(&resolved, false);
    let executed =
        execute(&turn, &resolved, &Choices::default(), Destination::New(location, &plan), progress)?;
    super::report::after(&executed, format, |contents, style| worth(contents, style) + "\n", None)?;
    Ok(Exit::after(executed))
}

/// How long it takes, in ns: each half of a pair starts its environment anew, which has been started once to look at it.
fn takes_ns(resolved: &Resolved, start_ns: u64) -> u64 {
    let halves = resolved.scenarios.iter().filter(|scenario| scenario.expected_ns() > 0);
    halves.fold(0, |sum: u64, half| sum.saturating_add(half.expected_ns()).saturating_add(start_ns))
}

/// How many settings are tested.
fn tested(plan: &Plan) -> usize {
    plan.proof.iter().filter(|proof| proof.reason.is_none()).count()
}

/// The error of each test, if `settings` settings are tested together.
fn error(settings: usize) -> f64 {
    let tests = u32::try_from(PROVEN.len() * settings.max(1)).unwrap_or(u32::MAX);
    ERROR / f64::from(tests)
}

/// The number of pairs that show an effect of [`TWO_SIGMA`] among `settings` settings.
fn enough(settings: usize) -> u32 {
    let shows = |pairs: &u32| {
        let pairs = usize::try_from(*pairs).unwrap_or(usize::MAX);
        detectable(pairs, error(settings)).is_some_and(|least| least <= TWO_SIGMA)
    };
    (FEWEST..MOST).find(shows).unwrap_or(MOST)
}

/// The effect that `pairs` pairs can show, before anything is measured.
fn power(plan: &Plan, pairs: u32) -> Result<String, Failure> {
    let settings = tested(plan);
    if pairs < FEWEST {
        let needed = least_pairs(error(settings));
        return Ok(format!(
            "exploratory: {pairs} pairs each give medians; an effect can be shown by {needed} pairs or more"
        ));
    }
    let least =
        detectable(usize::try_from(pairs).unwrap_or(usize::MAX), error(settings)).ok_or_else(|| {
            Failure::say(
                format!("{pairs} pairs cannot show any effect if {settings} settings are tested"),
                format!("use --pairs {} or more, or test fewer settings", least_pairs(error(settings))),
            )
        })?;
    Ok(format!(
        "{pairs} pairs each: detects effects above {least:.1} standard deviations of a pair's difference (80 % power, \
         95 % confidence overall)"
    ))
}

/// The plan of pairs.
struct Designed {
    plan: Plan,
    /// How many there are of each setting.
    pairs: u32,
    /// How long the environment took to start and to say what it is, in ns.
    start_ns: u64,
}

fn designed(arguments: &Prove) -> Result<Designed, Failure> {
    let Place { name, spec } = Place::of(&arguments.environment, &Real)?;
    let known = environment::find(&spec.kind).filter(|_| name == spec.kind).ok_or_else(|| {
        Failure::say(
            format!("--in {name}: settings cannot be tested in a running environment"),
            "name a kind of environment, which tactus starts anew for each half of a pair",
        )
    })?;
    let mut spec = facts::described(spec, arguments.kernel.as_deref(), arguments.cmdline.as_deref());
    spec.cpus = arguments.cpus.clone().map(CpuRequest::List);
    let began = Instant::now();
    let seen = facts::inside(&name, &spec)?;
    let start_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let isolated = arguments.cpus.clone().filter(|_| !known.numbers_cpus());
    let intent = Intent { isolated, carrier: seen.carrier, ..Intent::default() };
    // Settings are the kernel's, and a container shares its host's.
    let role = if known.numbers_cpus() { seen.role } else { tactus_model::finding::Role::Host };
    let subject = Subject::new(&seen.facts, role, &intent);
    let mut request = Request {
        ids: if arguments.all { Vec::new() } else { arguments.ids.clone() },
        name,
        environment: spec,
        pairs: arguments.pairs.unwrap_or(FEWEST),
        duration: if arguments.quick { QUICK } else { arguments.duration },
        load: !arguments.idle,
        seed: seed::new(),
        boots: known.numbers_cpus(),
    };
    let first = plan(&request, &subject);
    if arguments.pairs.is_some() {
        return Ok(Designed { plan: first, pairs: request.pairs, start_ns });
    }
    request.pairs = enough(tested(&first));
    Ok(Designed { plan: plan(&request, &subject), pairs: request.pairs, start_ns })
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

fn dry(plan: &Plan, about: &str, told: &str) -> Result<Exit, Failure> {
    let mut text = String::new();
    for proof in &plan.proof {
        let _ = match &proof.reason {
            Some(reason) => writeln!(text, "{:<24} not tested: {reason}", proof.setting),
            None => writeln!(text, "{:<24} {}", proof.setting, proof.what),
        };
    }
    let _ = writeln!(text, "\n{told}");
    let _ = writeln!(text, "{} measurements: about {about}", plan.scenario.len());
    output::text(&text)?;
    Ok(Exit::Good)
}
