//! A conversation with the probe of one environment.
#![expect(clippy::print_stderr, reason = "what was heard is said, for who reads the test")]

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tactus_environment::{ConsoleFile, Environment, Running, Setting, StartError, Stream};
use tactus_model::CpuSet;
use tactus_model::catalogue::measure::Timer;
use tactus_model::catalogue::{Load, Measure};
use tactus_model::facts::Facts;
use tactus_model::message::{Activity, FromProbe, Job, Note, PROTOCOL, Refusal, ToProbe, What};
use tactus_model::plan;
use tactus_model::scheduling::Policy;
use tactus_model::wire::{Decoder, Item};
use tactus_system::guardian::{Guardian, Workspace};
use tactus_system::topology;
use tactus_system::{Connection, Directory, Real, Remote, System};

use super::leftovers;

/// Longer than anything takes on a machine that is shared and emulates.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The writing end of a stream: for messages, and for other bytes.
#[derive(Clone)]
struct Mouth(Arc<Mutex<Box<dyn Write + Send>>>);

impl Write for Mouth {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap().flush()
    }
}

/// Speaks with a probe: messages to it and from it.
pub trait Speaks {
    /// Says something to the probe.
    fn say(&mut self, message: &ToProbe);

    /// The next message.
    fn hear(&mut self, patience: Duration) -> FromProbe;
}

/// Listens to a probe until its stream ends: what is no answer to a call can be heard.
pub fn listen(mut reader: Box<dyn Read + Send>, connection: Arc<Connection>) -> Receiver<FromProbe> {
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        let mut decoder = Decoder::new();
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = reader.read(&mut buffer) {
            for item in decoder.feed(&buffer[..read]) {
                match item {
                    Item::Message(message) => {
                        if let Some(message) = connection.take(message) {
                            let _ = sender.send(message);
                        }
                    }
                    other => eprintln!("{other:?}"),
                }
            }
        }
        connection.ended();
    });
    heard
}

/// An environment that is up, and both ends of its stream.
pub struct Conversation {
    /// The environment.
    pub running: Box<dyn Running>,
    /// Sends to the probe, and to its system.
    pub connection: Arc<Connection>,
    mouth: Option<Mouth>,
    heard: Receiver<FromProbe>,
    measuring: CpuSet,
    housekeeping: CpuSet,
    workspace: Workspace,
    guardian: Guardian,
}

impl Conversation {
    /// Starts an environment.
    pub fn begin(environment: &dyn Environment, spec: &plan::Environment) -> Result<Self, StartError> {
        Self::begin_on(&*crate::places::system(spec), environment, spec)
    }

    /// Starts an environment on a machine that is not quite the real one.
    pub fn begin_on(
        system: &dyn System,
        environment: &dyn Environment,
        spec: &plan::Environment,
    ) -> Result<Self, StartError> {
        let machine = topology(&Real);
        let layout = match spec.attach {
            Some(_) => environment.attached(spec, system, &machine)?,
            None => {
                let cpus = spec.cpus.as_ref().map(|cpus| machine.resolve(cpus)).transpose();
                let cpus = cpus.expect("CPUs of this machine").unwrap_or_else(|| machine.allowed.clone());
                environment.layout(&cpus, false, &machine)
            }
        };
        let guardian = Guardian::start(&Real).expect("a guardian");
        let workspace = guardian.workspace().expect("a workspace");
        let kept = Directory::open(workspace.path()).expect("the workspace");
        let housekeeping = machine.housekeeping(&machine.measuring());
        let mut running = environment.start(&Setting {
            system,
            guardian: &guardian,
            name: "contract test",
            spec,
            layout: &layout,
            housekeeping,
            measured: layout.measuring.clone(),
            workspace: workspace.path(),
            console: ConsoleFile::new(&kept, "console.log"),
            patience: PATIENCE,
            network: None,
            card: None,
        })?;
        let Stream { reader, writer } = running.take_stream().expect("a stream");
        assert!(running.take_stream().is_none(), "a stream is given once");
        let mouth = Mouth(Arc::new(Mutex::new(writer)));
        let connection = Arc::new(Connection::new(Some(Box::new(mouth.clone()))));
        let heard = listen(reader, Arc::clone(&connection));
        Ok(Self {
            running,
            connection,
            mouth: Some(mouth),
            heard,
            housekeeping: layout.inside().minus(&layout.measuring),
            measuring: layout.measuring,
            workspace,
            guardian,
        })
    }

    /// The name of the run.
    pub fn id(&self) -> &str {
        self.guardian.id()
    }

    /// The guardian of the run.
    pub fn guardian(&self) -> &Guardian {
        &self.guardian
    }

    /// The system of the environment, through its probe.
    pub fn system(&self) -> Remote {
        Remote::new(Arc::clone(&self.connection), std::env::consts::ARCH)
    }

    /// Whether the stream ends.
    pub fn hears_the_end(&mut self) -> bool {
        loop {
            match self.heard.recv_timeout(PATIENCE) {
                Ok(_) => {}
                Err(error) => return error == std::sync::mpsc::RecvTimeoutError::Disconnected,
            }
        }
    }

    /// Waits for hello and all facts.
    pub fn greet(&mut self) -> Facts {
        let FromProbe::Hello(hello) = self.hear(PATIENCE) else { panic!("hello comes first") };
        assert_eq!(hello.protocol, PROTOCOL);
        assert!(hello.can.iter().any(|word| word == "timer"));
        let mut facts = Facts::default();
        loop {
            if let FromProbe::Facts { readings, last } = self.hear(PATIENCE) {
                facts.0.extend(readings.0);
                if last {
                    return facts;
                }
            }
        }
    }

    /// The next message.
    pub fn hear(&mut self, patience: Duration) -> FromProbe {
        self.heard.recv_timeout(patience).unwrap_or_else(|error| {
            // The threads first: asking for last words may end what is looked at.
            let threads = leftovers::threads(self.guardian.id());
            let words = self.running.last_words().unwrap_or_default();
            panic!("the probe is silent ({error}): {words}\nwhat ran:\n{threads}")
        })
    }

    /// Says something to the probe.
    pub fn say(&mut self, message: &ToProbe) {
        self.connection.say(message).expect("the probe listens");
    }

    /// Writes bytes to the probe.
    pub fn write(&mut self, bytes: &[u8]) {
        let mouth = self.mouth.as_mut().expect("the stream is open");
        mouth.write_all(bytes).and_then(|()| mouth.flush()).expect("the probe listens");
    }

    /// Makes a load on all CPUs for half a second; returns its rounds, or why it is refused.
    pub fn load(&mut self, load: &Load) -> Result<u64, Refusal> {
        self.say(&ToProbe::Job(Job {
            duration_ns: 1_000_000_000,
            tick_ns: 250_000_000,
            control: tactus_model::control::ControlBy::Nothing,
            no_side_effects: true,
            housekeeping: self.housekeeping.clone(),
            activities: vec![Activity::new(
                3,
                self.measuring.or(&self.housekeeping),
                What::Load(load.clone()),
            )],
            changes: Vec::new(),
            restore: false,
            budget: self.running.budget().unwrap_or(0),
            cache_misses: false,
            blame_above: None,
            blame_by: None,
            lock_in: None,
        }));
        loop {
            match self.hear(PATIENCE) {
                FromProbe::Ready => self.say(&ToProbe::Go),
                FromProbe::Refused(refusal) => return Err(refusal),
                FromProbe::Note(note) => eprintln!("{}: {}", load.kind(), note.text),
                FromProbe::Done(done) => {
                    let rounds = done.load_rounds.iter().find(|(id, _)| *id == 3);
                    return Ok(rounds.map_or(0, |(_, rounds)| *rounds));
                }
                _ => {}
            }
        }
    }

    /// Has the timer measured, and returns when it has begun.
    pub fn measure_for(&mut self, duration: Duration) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap();
        let measure = Measure::Timer(Timer::default());
        let what = What::Measure { measure, interval_ns: 2_000_000, priority: 80, policy: Policy::Fifo };
        self.say(&ToProbe::Job(Job {
            duration_ns: ns(duration),
            tick_ns: 100_000_000,
            control: tactus_model::control::ControlBy::Nothing,
            no_side_effects: false,
            housekeeping: self.housekeeping.clone(),
            activities: vec![Activity::new(0, self.measuring.clone(), what)],
            changes: Vec::new(),
            restore: false,
            budget: self.running.budget().unwrap_or(0),
            cache_misses: false,
            blame_above: None,
            blame_by: None,
            lock_in: None,
        }));
        loop {
            match self.hear(PATIENCE) {
                FromProbe::Ready => self.say(&ToProbe::Prove),
                FromProbe::Proven(_) => break,
                FromProbe::Refused(refusal) => panic!("refused: {refusal:?}"),
                _ => {}
            }
        }
        self.say(&ToProbe::Go);
    }

    /// Tells the probe to quit and ends everything. Returns what could not be taken back.
    pub fn end(mut self) -> Vec<Note> {
        // The probe may have gone already.
        let _ = self.connection.say(&ToProbe::Quit);
        self.connection.hang_up();
        drop(self.mouth.take());
        self.running.stop();
        drop(self.running);
        drop(self.workspace);
        self.guardian.finish().notes
    }
}

impl Speaks for Conversation {
    fn say(&mut self, message: &ToProbe) {
        self.say(message);
    }

    fn hear(&mut self, patience: Duration) -> FromProbe {
        self.hear(patience)
    }
}
