//! Plans in scripted environments, and their runs.

use super::*;

/// A plan of one scenario per name, each in the scripted environment of that name.
pub(super) fn written(scripts: &[(&str, &'static Scripted)]) -> Plan {
    let scenario = |(name, _): &(&str, &'static Scripted)| plan::Scenario {
        name: Some((*name).into()),
        environment: Some((*name).into()),
        measurement: Some(Measure::Timer(Timer::default())),
        policy: Some(Policy::Fifo),
        duration: Some(tactus_model::Nanos::from_secs(3)),
        ..plan::Scenario::default()
    };
    let environment = |(name, _): &(&str, &'static Scripted)| {
        let environment = plan::Environment { kind: "host".into(), ..plan::Environment::default() };
        ((*name).to_owned(), environment)
    };
    Plan {
        name: "scripted".into(),
        environment: scripts.iter().map(environment).collect(),
        scenario: scripts.iter().map(scenario).collect(),
        ..Plan::default()
    }
}

pub(super) fn resolved(scripts: &[(&str, &'static Scripted)]) -> Resolved {
    resolved_as(&written(scripts), &Choices::default(), scripts)
}

pub(super) fn resolved_as(plan: &Plan, choices: &Choices, scripts: &[(&str, &'static Scripted)]) -> Resolved {
    let source = Source::new("test", "");
    let mut resolved =
        resolve(plan, &source, choices, &Topology::of(&Facts::default()), &Real).expect("a good plan");
    for (name, script) in scripts {
        resolved.environments.get_mut(*name).expect("it was put in").kind = *script;
    }
    resolved
}

/// Every event of a run, for a look at what happened; it may ask for the end at the last tick.
struct Witness {
    recorder: Box<Recorder>,
    events: Rc<RefCell<Vec<Stamped>>>,
    stops: Option<Interrupt>,
}

impl Record for Witness {
    fn record(&mut self, event: &Stamped) -> Result<(), BundleError> {
        self.recorder.record(event)?;
        if let (Event::Ticked(ticked), Some(interrupt)) = (&event.event, &self.stops)
            && ticked.n == 2
        {
            interrupt.ask();
        }
        self.events.borrow_mut().push(event.clone());
        Ok(())
    }

    fn finish(self: Box<Self>, status: RunStatus) -> Result<(), BundleError> {
        self.recorder.finish(status)
    }
}

pub(super) fn perform(
    scripts: &[(&str, &'static Scripted)],
    dir: &Path,
    stop_at_last_tick: bool,
) -> (RunStatus, Contents, Vec<Event>) {
    perform_resolved(&resolved(scripts), dir, stop_at_last_tick)
}

pub(super) fn perform_resolved(
    resolved: &Resolved,
    dir: &Path,
    stop_at_last_tick: bool,
) -> (RunStatus, Contents, Vec<Event>) {
    perform_into(writer(resolved, dir), resolved, dir, stop_at_last_tick)
}

pub(super) fn writer(resolved: &Resolved, dir: &Path) -> Writer {
    let results: Vec<_> = resolved.rows.iter().map(|row| row.result.clone()).collect();
    Writer::create(dir.join("bundle"), &resolved.plan, &results, Machine::default()).expect("a bundle")
}

pub(super) fn perform_into(
    writer: Writer,
    resolved: &Resolved,
    dir: &Path,
    stop_at_last_tick: bool,
) -> (RunStatus, Contents, Vec<Event>) {
    perform_guarded(Guardian::start(&Real).expect("a guardian"), writer, resolved, dir, stop_at_last_tick)
}

pub(super) fn perform_guarded(
    guardian: Guardian,
    writer: Writer,
    resolved: &Resolved,
    dir: &Path,
    stop_at_last_tick: bool,
) -> (RunStatus, Contents, Vec<Event>) {
    let (status, contents, events) = perform_stamped(guardian, writer, resolved, dir, stop_at_last_tick);
    (status, contents, events.into_iter().map(|stamped| stamped.event).collect())
}

pub(super) fn perform_stamped(
    guardian: Guardian,
    writer: Writer,
    resolved: &Resolved,
    dir: &Path,
    stop_at_last_tick: bool,
) -> (RunStatus, Contents, Vec<Stamped>) {
    let interrupt = Interrupt::default();
    let bundle = dir.join("bundle");
    let stops = stop_at_last_tick.then(|| interrupt.clone());
    let events = Rc::new(RefCell::new(Vec::new()));
    let recorder = Box::new(Recorder::new(writer, resolved));
    let witness = Witness { recorder, events: Rc::clone(&events), stops };
    let workspace = guardian.workspace().expect("a directory");
    let emitter = Emitter::new(Box::new(witness), Vec::new());
    let consoles = Directory::open(dir).expect("a directory");
    let on = On { system: &Real, machine: &topology(&Real) };
    run(resolved, on, guardian, workspace, &consoles, &interrupt, emitter).expect("a run");
    let contents = bundle::read(&bundle, Trust::Whole).expect("a whole bundle");
    (contents.manifest.status, contents, events.take())
}
