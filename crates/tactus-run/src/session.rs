//! The conversation with the probe of one environment.

use std::io;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tactus_environment::{Running, Stream};
use tactus_model::bundle::ClockFit;
use tactus_model::change::Change;
use tactus_model::clock::Hole;
use tactus_model::facts::Facts;
use tactus_model::message::{CLOCK, ClockQuestion, FromProbe, Hello, Job, ToProbe};
use tactus_model::wire::{Decoder, Item};
use tactus_model::{CpuSet, Evidence};
use tactus_system::clock_page::Shown;
use tactus_system::guardian::Guardian;
use tactus_system::{BOOT_ID, Connection, Remote, System, boot_id, boottime_ns, monotonic_ns};

use super::allowance::{Allowance, Backlog, Before, Excess, Share, clip, weight};
use super::clock_bounds::ClockBounds;
use super::clock_exchange::{Exchange, FEW, MANY};
use super::clock_fit::Arrivals;
use super::nested::Nest;
use super::standstill::Standstills;

/// An arrival from an environment.
#[expect(clippy::large_enum_variant, reason = "nearly all of them are items")]
#[derive(Debug)]
pub enum Arrival {
    /// A message, foreign text or a loss, and the room that it takes until it is handled.
    Item(Item<FromProbe>, Share),
    /// The stream has ended.
    Ended,
}

/// An environment that is up, with its probe.
pub struct Session {
    /// Its number within the run.
    pub number: usize,
    /// The plan's name for it.
    pub name: String,
    /// The environment that it lies inside.
    pub inside: Option<String>,
    /// It is on a network path, which ends with its scenario.
    pub on_path: bool,
    /// CPUs inside that it was started to measure on.
    pub measured: CpuSet,
    /// The environment.
    pub running: Box<dyn Running>,
    /// The probe's description of itself.
    pub hello: Option<Hello>,
    /// The facts that the probe read.
    pub facts: Facts,
    /// Whether all facts have arrived.
    pub facts_complete: bool,
    /// The probe has prepared its job.
    pub ready: bool,
    /// The control of its job is over, or the job has no control.
    pub proven: bool,
    /// Its job has a control, before measuring and after it.
    pub proves: bool,
    /// The bounds on its clock by that of this machine.
    pub clocks: ClockBounds,
    /// The evidence of its numbers, once that is known.
    pub evidence: Option<Evidence>,
    /// The job measures something (rather than only making load).
    pub measures: bool,
    /// The job makes settings: its facts come again once they are made.
    pub sets: bool,
    /// The settings of its job that the scenario is about: it is measured with these or not at all.
    pub under_test: Vec<Change>,
    /// The job has ended.
    pub done: bool,
    /// The probe could not take its last job.
    pub refused: bool,
    /// The stream has ended.
    pub ended: bool,
    /// When its ticks arrived: they compare its clock with this machine's.
    pub arrivals: Arrivals,
    /// The answers of its clock, which the reader's thread takes in.
    exchange: Arc<Mutex<Exchange>>,
    /// It is asked while it measures, too, and when it last was.
    asks: bool,
    asked: Instant,
    /// The same, for when its clock stood still.
    standstills: Standstills,
    /// When the probe last said anything.
    pub heard: Instant,
    /// How long it was waited for since then because it was paused.
    pub paused: Duration,
    /// It was paused when that was last asked, and has said nothing since.
    pub stands: bool,
    /// When it was told to begin its job.
    pub told_to_go: Instant,
    /// When the last tick of it arrived, or it was told to begin, in ns of CLOCK_BOOTTIME.
    pub heard_ns: u64,
    /// The last lines that were no frames.
    pub foreign: Vec<String>,
    /// The messages that it has sent, and their limits.
    allowance: Allowance,
    /// Bytes that have arrived and are not handled yet.
    backlog: Arc<Backlog>,
    /// The means by which other environments run inside it.
    nest: Option<Nest>,
    connection: Arc<Connection>,
    reader: Option<JoinHandle<()>>,
}

/// How often its clock is asked for while it measures.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// How long answers in a page of memory are waited for; a guest that is awake gives all in a few milliseconds.
const BY_PAGE: Duration = Duration::from_millis(500);
const FOREIGN_LINES: usize = 20;
/// How much of a line that was no frame is kept, in bytes.
const FOREIGN_LINE: usize = 400;
/// How long the end of a stream is awaited whose environment has been ended: somebody else may hold it open.
const REST: Duration = Duration::from_secs(2);

impl Session {
    /// Begins to listen; what arrives goes to `to` with the number of this session.
    pub fn open(
        name: &str,
        mut running: Box<dyn Running>,
        measured: CpuSet,
        number: usize,
        to: Sender<(usize, Arrival)>,
    ) -> Self {
        let (reader, writer) = match running.take_stream() {
            Some(Stream { reader, writer }) => (Some(reader), Some(writer)),
            None => (None, None),
        };
        let connection = Arc::new(Connection::new(writer));
        let backlog = Arc::new(Backlog::default());
        let exchange = Arc::<Mutex<Exchange>>::default();
        let (heard, waiting) = (Arc::clone(&connection), Arc::clone(&backlog));
        let answers = Arc::clone(&exchange);
        let reader = reader.map(|reader| {
            std::thread::spawn(move || listen(reader, &heard, &answers, &waiting, number, &to))
        });
        Self {
            number,
            name: name.to_owned(),
            inside: None,
            on_path: false,
            measured,
            running,
            hello: None,
            facts: Facts::default(),
            facts_complete: false,
            ready: false,
            proven: false,
            proves: false,
            clocks: ClockBounds::default(),
            evidence: None,
            measures: false,
            sets: false,
            under_test: Vec::new(),
            done: false,
            refused: false,
            ended: false,
            arrivals: Arrivals::default(),
            exchange,
            asks: false,
            asked: Instant::now(),
            standstills: Standstills::default(),
            heard: Instant::now(),
            paused: Duration::ZERO,
            stands: false,
            told_to_go: Instant::now(),
            heard_ns: boottime_ns(),
            foreign: Vec::new(),
            allowance: Allowance::new(Instant::now()),
            backlog,
            nest: None,
            connection,
            reader,
        }
    }

    /// Says something to the probe.
    ///
    /// # Errors
    /// When the stream is broken.
    pub fn say(&mut self, message: &ToProbe) -> io::Result<()> {
        self.connection.say(message)
    }

    /// Whether its probe runs on this machine's own kernel: then both read one clock.
    pub fn is_of_this_kernel(&self, system: &dyn System) -> bool {
        self.facts.text(BOOT_ID).is_some_and(|there| there.trim() == boot_id(system))
    }

    /// The means by which other environments run inside this one; made when the first one comes.
    ///
    /// # Errors
    /// When its probe does not do its part.
    pub fn nest(&mut self, guardian: &Guardian) -> io::Result<&Nest> {
        if self.nest.is_none() {
            let arch = self.hello.as_ref().map_or(std::env::consts::ARCH, |hello| hello.arch.as_str());
            let system = Remote::new(Arc::clone(&self.connection), arch);
            self.nest = Some(Nest::make(system, guardian, &self.name)?);
        }
        self.nest.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// It did not prove its instrument again in time.
    pub const fn self_test_timed_out(&mut self) {
        self.done = false;
    }

    /// Whether the next scenario may use it as it is: its job has ended well and left nothing behind.
    pub fn is_reusable(&self) -> bool {
        self.done && !self.ended && !self.sets && !self.on_path && self.facts_complete
    }

    /// The reports that the next start of it continues with; `None`: it was given no job.
    pub fn reported(&self) -> Option<Before> {
        self.allowance.before()
    }

    /// Gives the probe its job, for which earlier starts of it may have sent reports.
    ///
    /// # Errors
    /// When the stream is broken.
    pub fn give(&mut self, job: Job, before: Option<&Before>) -> io::Result<()> {
        (self.ready, self.done, self.refused) = (false, false, false);
        self.arrivals = Arrivals::default();
        *self.exchange() = Exchange::default();
        self.asks = false;
        self.standstills = Standstills::default();
        self.proves = job.control.is_some();
        self.proven = !self.proves;
        self.allowance.begin(&job, self.evidence == Some(Evidence::Imported), before);
        self.say(&ToProbe::Job(job))
    }

    /// Tells the probe to begin its job.
    ///
    /// # Errors
    /// When the stream is broken.
    pub fn go(&mut self) -> io::Result<()> {
        (self.told_to_go, self.heard_ns) = (Instant::now(), boottime_ns());
        (self.paused, self.stands) = (Duration::ZERO, false);
        self.say(&ToProbe::Go)
    }

    /// Takes in what has arrived, as far as it may send it.
    ///
    /// # Errors
    /// When it may not.
    pub fn admit(&mut self, item: Item<FromProbe>) -> Result<Item<FromProbe>, Excess> {
        self.allowance.admit(item, Instant::now())
    }

    /// Tells the probe to prove its instrument.
    ///
    /// # Errors
    /// When the stream is broken.
    pub fn prove(&mut self) -> io::Result<()> {
        self.proven = false;
        self.clocks.tell(boottime_ns());
        self.say(&ToProbe::Prove)
    }

    /// A tick that ended `at_ns` after the beginning has arrived now.
    pub fn ticked(&mut self, at_ns: u64) {
        (self.heard_ns, self.stands) = (boottime_ns(), false);
        self.arrivals.add(at_ns, monotonic_ns());
        // It has just sent a message: the channel is awake.
        if self.asks && self.asked.elapsed() >= ASK_AGAIN {
            self.ask(FEW);
        }
        // A channel of few bytes a second may lag more and more.
        if self.running.budget().is_none() {
            self.standstills.add(at_ns, self.heard_ns);
        }
    }

    /// When its clock stood still while it measured.
    pub fn stood_still(&mut self) -> Vec<Hole> {
        let holes = self.standstills.end();
        self.clocks.stood(holes.iter().fold(0, |sum: u64, hole| sum.saturating_add(hole.length_ns)));
        holes
    }

    /// Asks for its clock by the page of memory in which it shows it. Returns whether it did; its channel answers once,
    /// too, which is to be waited for.
    pub fn ask_by_page(&mut self) -> bool {
        let (exchange, connection) = (Arc::clone(&self.exchange), Arc::clone(&self.connection));
        let exchange = || exchange.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(page) = self.running.clock_page() else { return false };
        self.asked = Instant::now();
        exchange().give_up();
        let Some(n) = exchange().begin(1, monotonic_ns()) else { return false };
        // A broken stream shows itself as its end.
        let _ = connection.say(&ToProbe::Clock(ClockQuestion { n, page: true }));
        let until = self.asked + BY_PAGE;
        let shown: Vec<Shown> = (0..MANY).map_while(|_| page.ask(until)).collect();
        page.end();
        shown.iter().for_each(|shown| exchange().shown(*shown));
        !shown.is_empty()
    }

    /// Asks for its clock `times` times, one after the other.
    pub fn ask(&mut self, times: u32) {
        self.asked = Instant::now();
        // One that was lost on the way holds nothing up.
        self.exchange().give_up();
        let question = self.exchange().begin(times, monotonic_ns());
        // A broken stream shows itself as its end.
        let _ = question.map(|n| self.say(&ToProbe::Clock(ClockQuestion { n, page: false })));
    }

    /// Whether all that was asked for is answered.
    pub fn is_asked(&self) -> bool {
        self.ended || self.exchange().is_over()
    }

    /// Stops waiting for an open answer. `asks`: it is asked now and then while it measures.
    pub fn stop_asking(&mut self, asks: bool) {
        self.exchange().give_up();
        self.asks = asks;
    }

    /// Whether its clock can be asked for: it is heard at once, and is not this machine's own.
    pub fn has_a_clock(&self, system: &dyn System) -> bool {
        let can = self.hello.as_ref().is_some_and(|hello| hello.can.iter().any(|word| word == CLOCK));
        can && self.running.hears() && self.running.budget().is_none() && !self.is_of_this_kernel(system)
    }

    fn exchange(&self) -> std::sync::MutexGuard<'_, Exchange> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its clock against this machine's, as it answered, else as its ticks arrived; none where it has not reported.
    pub fn clock(&self) -> Option<ClockFit> {
        let arrived = self.arrivals.fit(self.running.budget().is_some());
        let answered = self.exchange().fit();
        // A fit that the ticks contradict is wrong: a tick cannot arrive before it was sent.
        let late = |own: &ClockFit| {
            arrived.is_none_or(|tick| own.began_ns <= tick.began_ns.saturating_add(own.late_ns))
        };
        answered.filter(late).or(arrived)
    }

    /// Keeps a line that was no frame, for the case that something goes wrong.
    pub fn keep_foreign(&mut self, mut line: String) {
        clip(&mut line, FOREIGN_LINE);
        if self.foreign.len() == FOREIGN_LINES {
            self.foreign.remove(0);
        }
        self.foreign.push(line);
    }

    /// Why the stream ended: the environment's own words, else what came instead of frames.
    pub fn last_words(&mut self) -> String {
        let own = self.running.last_words();
        match own {
            Some(words) if !words.trim().is_empty() => words,
            _ if !self.foreign.is_empty() => self.foreign.join("\n"),
            _ => "it ended without a message".into(),
        }
    }

    /// Ends the environment.
    pub fn close(mut self) {
        drop(self.nest.take());
        // A refusal shows itself as an end that has to be forced.
        let _ = self.say(&ToProbe::Quit);
        self.connection.hang_up();
        // The reader does not wait for room any more, and the sender finds the stream closed.
        self.backlog.close();
        self.running.stop();
        if let Some(reader) = self.reader.take() {
            let until = Instant::now() + REST;
            while !reader.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

fn listen(
    mut reader: Box<dyn io::Read + Send>,
    connection: &Connection,
    exchange: &Mutex<Exchange>,
    backlog: &Arc<Backlog>,
    number: usize,
    to: &Sender<(usize, Arrival)>,
) {
    let mut decoder = Decoder::new();
    let mut buffer = vec![0; 64 * 1024];
    // Passes on items that came then; `false`: the receiver is gone.
    let pass = |items: Vec<Item<FromProbe>>, now: u64| {
        items.into_iter().all(|item| {
            let item = match item {
                Item::Message(FromProbe::Clock(answer)) => {
                    let mut asks = exchange.lock().unwrap_or_else(PoisonError::into_inner);
                    if !asks.heard(&answer, now) {
                        Item::Message(FromProbe::Clock(answer))
                    } else {
                        let question = asks.next(monotonic_ns());
                        drop(asks);
                        // A broken stream shows itself as its end.
                        let _ = question
                            .map(|n| connection.say(&ToProbe::Clock(ClockQuestion { n, page: false })));
                        return true;
                    }
                }
                Item::Message(message) => match connection.take(message) {
                    Some(message) => Item::Message(message),
                    None => return true,
                },
                other => other,
            };
            let share = backlog.wait_for(weight(&item));
            share.is_some_and(|share| to.send((number, Arrival::Item(item, share))).is_ok())
        })
    };
    loop {
        let read = reader.read(&mut buffer);
        let now = monotonic_ns();
        let items = match read {
            Ok(0) => break,
            Ok(n) => decoder.feed(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        if !pass(items, now) {
            connection.ended();
            return;
        }
    }
    connection.ended();
    if pass(decoder.finish(), monotonic_ns()) {
        let _ = to.send((number, Arrival::Ended));
    }
}
