//! A cell of the partitioning hypervisor Jailhouse, with a Linux whose whole system is the probe.
//!
//! An earlier release was driven against a real Jailhouse v0.12 on an emulated arm64 board; this one is tried against what
//! that said and did (recorded), not on hardware.

#[doc(hidden)]
pub mod cells;
mod command;
#[doc(hidden)]
pub mod config;
mod driver_log;
mod end;
mod exits;
mod inmate;
mod options;
mod preconditions;
mod said;
mod stream;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tactus_model::facts::Facts;
use tactus_model::message::Note;
use tactus_model::plan;
use tactus_model::wire::Decoder;
use tactus_model::{CpuSet, Evidence};
use tactus_system::{Child, Invocation, System};

use crate::support::{Capped, Tty, cannot};
use crate::{Environment, OptionError, OptionKey, Running, Setting, StartError, Stream, Usable};
use cells::SYSFS;
use command::Jailhouse;
use config::Config;
use end::Ends;
use exits::Exits;
use inmate::Inmate;
use options::{HYPERVISOR, KEYS, Options};
use stream::{Heard, Mailbox, Watched};

/// See [`Environment::about`].
pub struct Partition;

/// The entry of the table.
pub static ENTRY: Partition = Partition;

/// How much of the hypervisor's console is quoted, in lines.
const LINES: usize = 8;

impl Environment for Partition {
    fn kind(&self) -> &'static str {
        "jailhouse"
    }

    fn about(&self) -> &'static str {
        "A cell of the partitioning hypervisor Jailhouse, with a Linux inmate whose initramfs is the probe. \
Before it starts, tactus checks the requirements; then it enables Jailhouse with the given system \
configuration, makes the cell and boots the inmate. It reads the console (a UART, or the hypervisor's), \
counts how often the CPUs enter the hypervisor, and reverts everything. The root cell is the environment \
`host`. An earlier release was driven against a real Jailhouse v0.12 on an emulated board, not on hardware."
    }

    fn options(&self) -> &'static [OptionKey] {
        KEYS
    }

    fn numbers_cpus(&self) -> bool {
        true
    }

    fn takes_cpus(&self) -> bool {
        true
    }

    fn owner(&self, cpus: &CpuSet, system: &dyn System) -> Option<String> {
        let cells =
            cells::all(system).into_iter().filter(|cell| cell.id != 0 && !cell.assigned.and(cpus).is_empty());
        let cells: Vec<cells::Cell> = cells.collect();
        let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        let all: Vec<String> = cells.iter().map(cells::Cell::to_string).collect();
        let back = |name: &str| format!("`jailhouse cell destroy {name}`");
        let back: Vec<String> = names.into_iter().map(back).collect();
        (!all.is_empty())
            .then(|| format!("Jailhouse has given it to {}; {} returns it", all.join("; "), back.join(", ")))
    }

    fn usable(&self, system: &dyn System) -> Usable {
        match preconditions::machine("jailhouse", system) {
            Ok(()) => {
                Usable::Yes { remark: Some("a plan must contain the configurations and the kernel".into()) }
            }
            Err(obstacle) => obstacle.into(),
        }
    }

    fn usable_as(&self, spec: &plan::Environment, system: &dyn System) -> Usable {
        let options = match Options::of(spec) {
            Ok(options) => options,
            Err(error) => return Usable::No { reason: error.message, remedy: error.hint },
        };
        match preconditions::machine(options.command, system)
            .and_then(|()| preconditions::plan(&options, system))
        {
            Ok(()) => Usable::Yes { remark: None },
            Err(obstacle) => obstacle.into(),
        }
    }

    fn check(&self, spec: &plan::Environment, _system: &dyn System) -> Result<(), OptionError> {
        Options::of(spec).map(drop)
    }

    fn start(&self, setting: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let options = Options::of(setting.spec)
            .map_err(|error| StartError { reason: error.message, hint: Some(error.hint) })?;
        preconditions::machine(options.command, setting.system)
            .and_then(|()| preconditions::plan(&options, setting.system))
            .map_err(|obstacle| StartError { reason: obstacle.reason, hint: Some(obstacle.remedy) })?;
        Ok(Box::new(Cell::start(setting, &options)?))
    }
}

/// A cell that runs. Dropping it takes it back.
struct Cell {
    jailhouse: Jailhouse,
    name: String,
    id: u32,
    stream: Option<Stream>,
    heard: Arc<Heard>,
    /// The carrier of the console, as long as it is read.
    console: Console,
    /// Bytes per second of a console that is a terminal.
    budget: Option<u64>,
    notes: Vec<Note>,
    /// Nothing can be said to its probe.
    deaf: bool,
    /// The counters of the cell and of the root cell when the measurement began.
    before: Option<(Exits, Exits)>,
    /// The last to be dropped.
    ends: Ends,
}

/// The source of the console's bytes.
enum Console {
    Tty(#[expect(dead_code, reason = "it is held open, and closed when dropped")] Tty),
    Follower(Box<dyn Child>),
    Closed,
}

impl Cell {
    fn start(setting: &Setting<'_>, options: &Options<'_>) -> Result<Self, StartError> {
        let system = setting.system;
        let jailhouse = Jailhouse::new(system, options.command).of_run(setting.guardian);
        let mut ends = Ends::new(&jailhouse, setting);
        let mut notes = Vec::new();
        let config = options.cell.unwrap_or_default();
        let bytes = system.read(Path::new(config)).map_err(|error| cannot(config, error))?;
        let Some(Config::Cell { name }) = config::parse(&bytes) else {
            return Err(cannot(config, "it is not a cell configuration"));
        };
        enable(setting, options, &jailhouse, &mut ends, &mut notes)?;
        if let Some(cell) = cells::named(&name, system) {
            return Err(StartError {
                reason: format!("{cell} already exists, and does not belong to this run"),
                hint: Some(format!("end it (jailhouse cell destroy {name}), or give another configuration")),
            });
        }
        ends.promise_destroy(setting, &name)?;
        jailhouse.run(&["cell", "create", config]).map_err(|refused| jailhouse.explain(&refused))?;
        let cell = created(&name, setting, &jailhouse)?;

        // Before the inmate boots, so that nothing it says is missed.
        let (from, to, console, budget) = open(setting, options, &jailhouse)?;
        let heard = Arc::new(Heard::default());
        let log = setting.console.anew().ok();
        let log = log.map(|to| Box::new(Capped::new(to)) as Box<dyn Write + Send>);
        let (into, pieces) = stream::listen(from, log, &heard);
        let inmate = Inmate::new(&jailhouse, options, setting)?;
        heard.boots(true);
        inmate.boot(b"")?;
        heard.boots(false);
        let mut deaf = false;
        let writer: Box<dyn Write + Send> = match (options.input, to) {
            (true, Some(writer)) => writer,
            _ => {
                deaf = true;
                notes.push(one_way());
                Box::new(Mailbox {
                    decoder: Decoder::new(),
                    inmate,
                    cell: name.clone(),
                    jailhouse: jailhouse.clone(),
                    heard: Arc::clone(&heard),
                    into,
                })
            }
        };
        let reader = Watched {
            pieces,
            rest: VecDeque::new(),
            heard: Arc::clone(&heard),
            cell: name.clone(),
            jailhouse: jailhouse.clone(),
            looked: Instant::now(),
            ended: 0,
        };
        let stream = Some(Stream { reader: Box::new(reader), writer });
        Ok(Self {
            jailhouse,
            name,
            id: cell.id,
            stream,
            heard,
            console,
            budget,
            notes,
            deaf,
            before: None,
            ends,
        })
    }

    fn exits(&self) -> (Exits, Exits) {
        let system = &*self.jailhouse.system;
        (Exits::read(self.id, system), Exits::read(0, system))
    }
}

/// Enables Jailhouse where it is not, and promises to disable it.
fn enable(
    setting: &Setting<'_>,
    options: &Options<'_>,
    jailhouse: &Jailhouse,
    ends: &mut Ends,
    notes: &mut Vec<Note>,
) -> Result<(), StartError> {
    if cells::enabled(setting.system) == Some(true) {
        notes.push(Note::info("Jailhouse was already enabled, and stays so"));
        return Ok(());
    }
    let path = options.system.unwrap_or_default();
    ends.promise_disable(setting)?;
    jailhouse.run(&["enable", path]).map_err(|refused| jailhouse.explain(&refused))?;
    if cells::enabled(setting.system) != Some(true) {
        return Err(cannot(
            "jailhouse enable",
            format!("it succeeded, but {SYSFS}/enabled does not show it"),
        ));
    }
    notes.push(Note::side_effect(format!(
        "Jailhouse is enabled with {path}: this system is its root cell until the environment ends"
    )));
    Ok(())
}

/// The cell that was made, when it has the CPUs that the plan says.
fn created(name: &str, setting: &Setting<'_>, jailhouse: &Jailhouse) -> Result<cells::Cell, StartError> {
    let cell = cells::named(name, setting.system).or_else(|| {
        let list = jailhouse.run(&["cell", "list"]).unwrap_or_default();
        cells::parse_list(&list).into_iter().find(|cell| cell.name == name)
    });
    let cell = cell.ok_or_else(|| {
        cannot("jailhouse cell create", format!("it succeeded, but there is no cell {name}"))
    })?;
    let planned = setting.layout.outside();
    if cell.assigned != planned {
        return Err(StartError {
            reason: format!(
                "the cell {name} has CPUs {} in its configuration, but {planned} in the plan",
                cell.assigned
            ),
            hint: Some(format!("write cpus = \"{}\" in the environment's table", cell.assigned)),
        });
    }
    Ok(cell)
}

type Ways = (Box<dyn Read + Send>, Option<Box<dyn Write + Send>>, Console, Option<u64>);

/// Opens the inmate's console.
fn open(setting: &Setting<'_>, options: &Options<'_>, jailhouse: &Jailhouse) -> Result<Ways, StartError> {
    if options.console == HYPERVISOR {
        let command =
            Invocation::new(jailhouse.words(&["console", "-f"])).with_env(setting.guardian.marker());
        let mut follower = setting
            .system
            .spawn(&command)
            .map_err(|error| cannot("`jailhouse console -f` does not start", error))?;
        let from =
            follower.take_stdout().ok_or_else(|| cannot("`jailhouse console -f`", "it has no output"))?;
        return Ok((from, None, Console::Follower(follower), None));
    }
    let path = Path::new(options.console);
    let is_socket = !options.console.contains('/')
        || setting
            .system
            .run(&Invocation::new(["test", "-S", options.console]))
            .is_ok_and(|said| said.success());
    let mut line = match is_socket {
        true => Tty::socket(options.console, setting.system)?,
        false => Tty::device(setting, path, Some(options.baud))?,
    };
    let stream = line.take_stream().ok_or_else(|| cannot(options.console, "it has no stream"))?;
    // A byte is ten bits on the wire. The speed of the line behind a socket is unknown.
    let budget = (!is_socket).then(|| u64::from(options.baud / 10));
    Ok((stream.reader, Some(stream.writer), Console::Tty(line), budget))
}

fn one_way() -> Note {
    Note::info(
        "the console carries no input to the inmate: it is booted once for its facts and once for each job, \
which begins by itself and waits for no other environment",
    )
}

impl Running for Cell {
    fn take_stream(&mut self) -> Option<Stream> {
        self.stream.take()
    }

    fn after_hello(&mut self) -> Result<Vec<Note>, StartError> {
        let mut notes = std::mem::take(&mut self.notes);
        let all: Vec<String> =
            cells::all(&*self.jailhouse.system).iter().map(cells::Cell::to_string).collect();
        notes.push(Note::info(format!("cells of Jailhouse: {}", all.join("; "))));
        Ok(notes)
    }

    fn evidence(&self, _facts: &Facts) -> Evidence {
        // Of the root cell's machine: the inmate's own facts always name a hypervisor.
        match tactus_system::virtualized(&*self.jailhouse.system) {
            true => Evidence::VirtualHost,
            false => Evidence::BareMetal,
        }
    }

    fn budget(&self) -> Option<u64> {
        self.budget
    }

    fn hears(&self) -> bool {
        !self.deaf
    }

    fn measuring(&mut self) {
        self.before = Some(self.exits());
    }

    fn measured(&mut self) -> Vec<Note> {
        let Some((before, root_before)) = self.before.take() else { return Vec::new() };
        let (now, root_now) = self.exits();
        let of = |cell: &str, sentences: Vec<String>| {
            sentences.into_iter().map(move |words| Note::info(format!("{cell}: {words}"))).collect::<Vec<_>>()
        };
        let mut notes = of(&format!("cell {}", self.name), now.since(&before));
        notes.extend(of("root cell", root_now.since(&root_before)));
        notes
    }

    fn last_words(&mut self) -> Option<String> {
        let system = &*self.jailhouse.system;
        let state = match cells::named(&self.name, system) {
            Some(cell) => cell.to_string(),
            None => format!("the cell {} is gone", self.name),
        };
        let mut words = vec![state];
        let ring = system.text(&format!("{SYSFS}/console")).unwrap_or_default();
        let clean: String = ring.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        let tells = |line: &&str| !line.contains("{\"q\":") && !said::lists_registers(line);
        let lines: Vec<&str> = clean.lines().filter(tells).collect();
        let said = tactus_system::last_lines(&lines.join("\n"), LINES);
        if self.heard.has_panicked() {
            words.insert(0, "the inmate's kernel has panicked".into());
        }
        // If the hypervisor's console is the inmate's, too, it is quoted once.
        if !said.is_empty() && !matches!(self.console, Console::Follower(_)) {
            words.push(format!("the hypervisor's console:\n{said}"));
        }
        let lines = self.heard.last_lines();
        words.push(match lines.is_empty() {
            true => "the inmate's console is empty".into(),
            false => format!("the last lines of the inmate's console:\n{lines}"),
        });
        if self.heard.is_doubled() {
            words.push(crate::support::DOUBLED.into());
        }
        if matches!(self.console, Console::Follower(_)) && !self.heard.speaks() {
            words.push(
                "only a kernel with CONFIG_JAILHOUSE_DBGCON writes to the hypervisor's console, and only from a cell with \
JAILHOUSE_CELL_VIRTUAL_CONSOLE_PERMITTED"
                    .into(),
            );
        }
        Some(words.join("; "))
    }

    fn stop(&mut self) {
        self.ends.take_back();
        if let Console::Follower(child) = &mut self.console {
            child.kill();
        }
        self.console = Console::Closed;
    }
}
