//! `tactus fleet run` and `tactus fleet render`.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tactus_fleet::{
    Advance, Counts, Engine, FORMAT, FleetError, Moved, Order, Row, Site, Status, Store, begun, listed,
};
use tactus_model::Nanos;
use tactus_system::Real;
use tactus_watch::screen::human;

use super::plan;
use crate::cli::{FleetRender, FleetRun, Wanted};
use crate::commands::seed;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

/// How often in a row an engine may give no answer before that is the end.
const MOST_SILENCE: u32 = 20;

/// The engine of this name.
pub fn engine(name: &str) -> Result<&'static (dyn Engine + Sync), Failure> {
    tactus_fleet::find(name).ok_or_else(|| {
        let names: Vec<&str> = tactus_fleet::ENGINES.iter().map(|engine| engine.name()).collect();
        Failure::say(format!("there is no engine `{name}`"), format!("use one of {}", names.join(", ")))
    })
}

pub fn run(arguments: &FleetRun) -> Result<Exit, Failure> {
    let engine = engine(&arguments.wanted.on)?;
    let there = Store::is_there(&arguments.wanted.out);
    let mut store = store(engine, &arguments.wanted)?;
    let mut advance = Advance::new(engine, &Real);
    if there {
        say(format_args!("continuing {}: {}", store.path().display(), Counts::of(store.rows()).line()));
        advance.look(&mut store, true)?;
    }
    let pause = arguments.every.map_or(engine.pause(), |every| Duration::from_nanos(every.0));
    let wait = arguments.wait.map(|wait| Duration::from_nanos(wait.0));
    let wave = usize::try_from(arguments.wave).unwrap_or(usize::MAX);
    watched(&mut advance, &mut store, wave, pause, wait)?;
    told(&store, arguments.json, false)
}

/// Advances the fleet until no job is under way, or the time to wait is over.
fn watched(
    advance: &mut Advance<'_>,
    store: &mut Store,
    wave: usize,
    pause: Duration,
    wait: Option<Duration>,
) -> Result<(), Failure> {
    let (began, mut silence) = (Instant::now(), 0);
    loop {
        let moved = match advance.step(store, wave) {
            Ok(moved) => {
                silence = 0;
                moved
            }
            // A controller that restarts answers again. Store the decisions so far.
            Err(error) if silence < MOST_SILENCE && !is_first(store) => {
                silence += 1;
                say(format_args!("note: {error}: trying again in {}", human(pause)));
                store.save()?;
                Moved { under_way: 1, ..Moved::default() }
            }
            Err(error) => {
                store.save()?;
                return Err(error.into());
            }
        };
        if moved.submitted + moved.arrived > 0 {
            say(Counts::of(store.rows()).line());
        }
        // Where the engine refused a whole wave, it is the next one's turn.
        if moved.is_over() {
            return Ok(());
        }
        let rest = wait.map_or(pause, |wait| wait.saturating_sub(began.elapsed()));
        if rest.is_zero() {
            say(format_args!(
                "{} are in progress after {}: repeat the command to continue; `tactus fleet collect` fetches \
                    later bundles",
                moved.under_way,
                human(wait.unwrap_or_default())
            ));
            return Ok(());
        }
        sleep(pause.min(rest));
    }
}

/// Whether no job was ever made: then what is wrong is wrong with the command.
fn is_first(store: &Store) -> bool {
    store.rows().iter().all(|row| row.attempts == 0)
}

pub fn render(arguments: &FleetRender) -> Result<Exit, Failure> {
    let engine = engine(&arguments.wanted.on)?;
    let store = store(engine, &arguments.wanted)?;
    let rows: Vec<&Row> = store.rows().iter().collect();
    let files = engine.render(&store.site(&Real), &rows);
    store.objects(&files)?;
    let objects = store.path().join("objects");
    say(format_args!(
        "wrote {} files for {} machines to {}; `tactus fleet run` with the same arguments starts them",
        files.len(),
        rows.len(),
        objects.display()
    ));
    for file in files {
        output::text(&format!("{}\n", objects.join(&file.name).display()))?;
    }
    Ok(Exit::Good)
}

/// The fleet, resumed or new.
fn store(engine: &dyn Engine, wanted: &Wanted) -> Result<Store, Failure> {
    let (name, text) = plan::text(&wanted.plan)?;
    plan::arguments(&wanted.plan, Path::new("bundle"), Nanos::from_secs(1), &wanted.arguments)?;
    let mut order = Order {
        format: FORMAT,
        tactus: env!("CARGO_PKG_VERSION").into(),
        id: String::new(),
        started: jiff::Timestamp::now().to_string(),
        engine: engine.name().into(),
        select: wanted.select.clone(),
        options: wanted.with.iter().cloned().collect(),
        plan: name,
        plan_sha256: tactus_fleet::sha256(text.as_bytes()),
        arguments: wanted.arguments.clone(),
        machines: Vec::new(),
    };
    if Store::is_there(&wanted.out) {
        let store = Store::open(&wanted.out)?;
        store.order.same(&order)?;
        engine.check(&store.site(&Real))?;
        kept(&store);
        return Ok(store);
    }
    let dir = std::path::absolute(&wanted.out)?;
    let site = Site { dir, order: &order, system: &Real };
    engine.check(&site)?;
    let machines = engine.machines(&site)?;
    let names = machines.iter().map(|machine| machine.name.as_str());
    order.machines = listed(names, &order.select)?;
    let store = Store::create(&wanted.out, order.named(seed::new()), text.as_bytes())?;
    kept(&store);
    Ok(store)
}

/// Keeps what the fleet is for those commands that only name its directory.
fn kept(store: &Store) {
    if let Err(error) = begun::keep(&store.order, store.path(), &Real) {
        let hint = error.hint.as_deref().unwrap_or_default();
        say(format_args!("note: {error}: {hint}"));
    }
}

/// Prints the progress of the fleet. While a bundle is missing, the result is inconclusive.
pub fn told(store: &Store, json: bool, all: bool) -> Result<Exit, Failure> {
    let status = Status::new(&store.order, store.rows());
    if json {
        output::json(&status)?;
    } else {
        output::text(&status.text(all))?;
    }
    Ok(if status.counts.are_complete() { Exit::Good } else { Exit::Inconclusive })
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        match error.hint.clone() {
            Some(hint) => Self::new(error, hint),
            None => anyhow::Error::from(error).into(),
        }
    }
}
