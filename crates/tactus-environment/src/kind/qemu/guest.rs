//! A guest that runs.

use std::io::{self, Cursor, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tactus_model::facts::Facts;
use tactus_model::message::Note;
use tactus_model::{CpuSet, Evidence};
use tactus_system::clock_page::ClockPage;
use tactus_system::{Child, Invocation, System, last_lines};

use super::command::{self, Sockets};
use super::exits::{self, Exits};
use super::qmp::{Monitor, is_paused, threads};
use crate::network::launch;
use crate::support::cannot;
use crate::support::guest::{
    self, Accel, BootError, Console, KVM_PATIENCE, TCG_PATIENCE, Threads, first_byte, listen, settle,
};
use crate::{Layout, Running, Setting, StartError, Stream};

/// How long QEMU may take to open its sockets; it does so before the guest runs.
const CONNECTION: Duration = Duration::from_secs(15);
/// How long the monitor may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a guest may take to power off after its probe was told to quit. Nothing is lost with it: all of its
/// output has arrived.
const STOP_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long QEMU's own end is awaited when its stream has ended.
const END: Duration = Duration::from_secs(2);

/// Words of a QEMU that has no such device, or cannot have that memory.
const NO_PAGE: [&str; 2] = ["ivshmem", "backing store"];

/// A guest that runs. Dropping it ends QEMU.
pub struct Guest {
    system: Arc<dyn System>,
    qemu: Box<dyn Child>,
    stream: Option<(Vec<u8>, UnixStream)>,
    monitor: UnixStream,
    accel: Accel,
    console: Console,
    layout: Layout,
    measured: CpuSet,
    housekeeping: CpuSet,
    notes: Vec<Note>,
    /// Virtual CPUs and their threads, once it has settled.
    vcpus: Vec<(u32, u32)>,
    /// Their exits when a measurement began, or why they are not known.
    exits: Option<Result<Exits, String>>,
    clock: Option<ClockPage>,
}

/// The options of QEMU whose support shows only when they are tried: not every build has them.
#[derive(Clone, Copy)]
pub struct Build<'a> {
    /// The accelerator of the guest.
    pub accel: Accel,
    /// Whether QEMU has its sandbox.
    pub sandbox: bool,
    /// Where the page of memory is in which the guest shows its clock.
    pub clock: Option<&'a Path>,
}

/// How a guest is started.
pub struct Launch<'a> {
    /// QEMU's words.
    pub words: &'a dyn Fn(Build<'_>) -> Vec<String>,
    /// Whether the guest can show its clock in a page of memory.
    pub shows_clock: bool,
    /// Where they say that QEMU's ends are.
    pub sockets: &'a Sockets,
    /// The plan's accelerator, and the one that is used here.
    pub wanted: &'a str,
    pub accel: Accel,
    /// How long its first word is awaited, where the plan says it.
    pub patience: Option<Duration>,
}

/// Starts a guest, once more where there is another way.
///
/// # Errors
/// When it does not come up in any.
pub fn start(
    setting: &Setting<'_>,
    launch: &Launch<'_>,
    mut notes: Vec<Note>,
) -> Result<Box<dyn Running>, StartError> {
    let notes = &mut notes;
    let waits =
        launch.patience.or(Some(if launch.accel == Accel::Kvm { KVM_PATIENCE } else { TCG_PATIENCE }));
    let page = launch.shows_clock.then(ClockPage::new).and_then(Result::ok);
    let path = page.as_ref().map(ClockPage::path);
    let boot = |build: Build<'_>, patience, notes: &mut Vec<Note>| {
        Guest::boot(setting, (launch.words)(build), build.accel, launch.sockets, patience, notes)
    };
    let mut build = Build { accel: launch.accel, sandbox: true, clock: path.as_deref() };
    let mut booted = boot(build, waits, notes);
    // Built without one or the other, QEMU says so and ends.
    while let Err(BootError::Other(error)) = &booted {
        if build.clock.is_some() && NO_PAGE.iter().any(|words| error.reason.contains(words)) {
            notes.push(Note::info(format!(
                "the guest's clock is read only through its channel, which is less exact: {}",
                error.reason
            )));
            build.clock = None;
        } else if build.sandbox && error.reason.contains("sandbox") {
            notes.push(Note::obstacle(
                format!(
                    "QEMU runs without its sandbox, so a guest that escapes from it has all rights of QEMU: \
                        {}",
                    error.reason
                ),
                "install a QEMU that is built with seccomp",
            ));
            build.sandbox = false;
        } else {
            break;
        }
        booted = boot(build, waits, notes);
    }
    let emulated = Build { accel: Accel::Tcg, ..build };
    let mut guest = match booted {
        Err(error) if launch.accel == Accel::Kvm && launch.wanted == "auto" => {
            notes.push(Note::obstacle(
                format!(
                    "the guest did not start under KVM and was started again under emulation (TCG): {}",
                    error.error().reason
                ),
                "check the host kernel's messages (dmesg) for kvm; `accel = \"kvm\"` makes this an error",
            ));
            boot(emulated, None, notes)?
        }
        // One emulated boot in some fifty stops before its init, with nothing said of why.
        Err(BootError::Silent(error)) if launch.accel == Accel::Tcg && launch.patience.is_none() => {
            notes.push(Note::obstacle(
                format!("the emulated guest did not start and was started once more: {}", error.reason),
                "`boot_timeout` in its table sets how long tactus waits for its first message, without a \
                    second try",
            ));
            boot(emulated, None, notes)?
        }
        booted => booted?,
    };
    guest.clock = page.filter(|_| build.clock.is_some());
    Ok(Box::new(guest))
}

impl Guest {
    /// Starts QEMU and connects to it. With `patience` the guest's first byte is awaited.
    ///
    /// # Errors
    /// When QEMU does not start, or the guest stays silent; with the words of both.
    fn boot(
        setting: &Setting<'_>,
        qemu: Vec<String>,
        accel: Accel,
        sockets: &Sockets,
        patience: Option<Duration>,
        notes: &mut Vec<Note>,
    ) -> Result<Self, BootError> {
        let probe = listen(setting.system, &sockets.probe)?;
        let monitor = listen(setting.system, &sockets.monitor)?;
        let console = Console::keep(listen(setting.system, &sockets.console)?, &setting.console)?;
        let mut qemu = qemu;
        if let Some(found) = command::find(&qemu[0], setting.system) {
            qemu[0] = found.display().to_string();
        }
        let mut words = setting.network.map_or_else(Vec::new, |place| launch(&place));
        words.extend(qemu);
        let command = Invocation::new(words).with_env(setting.guardian.marker());
        let mut qemu =
            setting.system.spawn(&command).map_err(|error| cannot("QEMU does not start", error))?;
        let until = Instant::now() + CONNECTION;
        let stream = accept(&probe, &mut *qemu, until)?;
        let monitor = accept(&monitor, &mut *qemu, until)?;
        let mut guest = Self {
            system: setting.system.share(),
            qemu,
            stream: Some((Vec::new(), stream)),
            monitor,
            accel,
            console,
            layout: setting.layout.clone(),
            measured: setting.measured.clone(),
            housekeeping: setting.housekeeping.clone(),
            notes: Vec::new(),
            vcpus: Vec::new(),
            exits: None,
            clock: None,
        };
        if let Some(patience) = patience {
            guest.await_first_byte(patience.min(setting.patience))?;
        }
        guest.notes = std::mem::take(notes);
        Ok(guest)
    }

    fn await_first_byte(&mut self, patience: Duration) -> Result<(), BootError> {
        let Some((heard, stream)) = &mut self.stream else { return Ok(()) };
        let Err(why) = first_byte(heard, stream, patience) else { return Ok(()) };
        Err(why.with(self.last_words()))
    }

    /// Waits for QEMU's own end.
    fn wait(&mut self, patience: Duration) -> Option<Option<i32>> {
        let until = Instant::now() + patience;
        loop {
            if let Ok(Some(code)) = self.qemu.try_wait() {
                return Some(code);
            }
            if Instant::now() > until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The exits that KVM has counted so far on its virtual CPUs.
    fn ask_exits(&self) -> Result<Exits, String> {
        let ask = || -> io::Result<Value> {
            self.monitor.set_read_timeout(Some(ANSWER))?;
            let mut monitor = Monitor::open(&self.monitor, &self.monitor)?;
            monitor.ask_with(exits::COMMAND, Some(exits::arguments()))
        };
        // Before version 7.1 QEMU does not know the command, and its refusal says so.
        let answer = ask().map_err(|error| error.to_string())?;
        let none = "this QEMU, or this kernel (before Linux 5.14), has no statistics of KVM";
        Exits::of(&answer, self.vcpus.len()).ok_or_else(|| none.into())
    }

    fn ask_paused(&self) -> io::Result<bool> {
        self.monitor.set_read_timeout(Some(ANSWER))?;
        let answer = Monitor::again(&self.monitor, &self.monitor).ask("query-status")?;
        Ok(is_paused(&answer))
    }

    fn ask_vcpus(&self) -> io::Result<Vec<(u32, u32)>> {
        self.monitor.set_read_timeout(Some(ANSWER))?;
        let mut monitor = Monitor::open(&self.monitor, &self.monitor)?;
        let told = threads(&monitor.ask("query-cpus-fast")?);
        own_threads(self.qemu.pid(), told, &*self.system)
    }
}

/// The same, if all of them belong to QEMU. A guest that has taken QEMU over could name any thread of the machine,
/// which tactus would then place and make real-time.
fn own_threads(process: u32, told: Vec<(u32, u32)>, system: &dyn System) -> io::Result<Vec<(u32, u32)>> {
    let own = |thread: u32| system.exists(Path::new(&format!("/proc/{process}/task/{thread}")));
    match told.iter().find(|(_, thread)| !own(*thread)) {
        None => Ok(told),
        Some((vcpu, thread)) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("QEMU names thread {thread} as vCPU {vcpu}, but that thread is not QEMU's"),
        )),
    }
}

fn accept(listener: &UnixListener, qemu: &mut dyn Child, until: Instant) -> Result<UnixStream, StartError> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(|error| cannot("QEMU's socket", error))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(cannot("QEMU's socket", error)),
        }
        let ended = qemu.try_wait().map_err(|error| cannot("QEMU", error))?.is_some();
        if ended || Instant::now() > until {
            let what = if ended { "QEMU ended immediately" } else { "QEMU did not open its sockets" };
            let words = last_lines(&qemu.stderr(), 8);
            return Err(StartError { reason: format!("{what}: {words}"), hint: hint(&words) });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn hint(words: &str) -> Option<String> {
    let locks = words.contains("mlockall") || words.contains("lock memory");
    locks.then(|| {
        "raise the limit of locked memory (`ulimit -l unlimited`), or leave out `lock_memory`".into()
    })
}

impl Running for Guest {
    fn take_stream(&mut self) -> Option<Stream> {
        let (heard, stream) = self.stream.take()?;
        let writer = stream.try_clone().ok()?;
        Some(Stream { reader: Box::new(Cursor::new(heard).chain(stream)), writer: Box::new(writer) })
    }

    fn after_hello(&mut self) -> Result<Vec<Note>, StartError> {
        let mut notes = std::mem::take(&mut self.notes);
        match self.ask_vcpus() {
            Ok(vcpus) => {
                self.vcpus.clone_from(&vcpus);
                let threads = Threads { process: self.qemu.pid(), vcpus: &vcpus };
                notes.extend(settle(
                    &threads,
                    &self.layout,
                    &self.measured,
                    &self.housekeeping,
                    &*self.system,
                ));
            }
            Err(error) => notes.push(Note::obstacle(
                format!("the threads of the vCPUs are unknown, so none is pinned: {error}"),
                "report this with QEMU's version",
            )),
        }
        if self.accel == Accel::Tcg {
            notes.push(Note::info(
                "the exits of its virtual CPUs are not visible here: the guest is emulated (TCG), and only KVM counts them",
            ));
        }
        let words = last_lines(&self.qemu.stderr(), 8);
        if !words.is_empty() {
            notes.push(Note::info(format!("QEMU said: {words}")));
        }
        Ok(notes)
    }

    fn measuring(&mut self) {
        // Of a guest that is emulated it was said when it came up.
        self.exits = (self.accel == Accel::Kvm).then(|| self.ask_exits());
    }

    fn measured(&mut self) -> Vec<Note> {
        let said = match self.exits.take() {
            None => Vec::new(),
            Some(before) => match before.and_then(|before| Ok((before, self.ask_exits()?))) {
                Ok((before, now)) => now.since(&before),
                Err(why) => vec![format!("the exits of its virtual CPUs are not visible here: {why}")],
            },
        };
        said.into_iter().map(Note::info).collect()
    }

    fn vcpus(&mut self) -> Vec<(u32, u32)> {
        self.vcpus.clone()
    }

    fn clock_page(&mut self) -> Option<&mut ClockPage> {
        self.clock.as_mut()
    }

    fn evidence(&self, _facts: &Facts) -> Evidence {
        guest::evidence(self.accel, &*self.system)
    }

    fn paused(&mut self) -> Option<&'static str> {
        self.ask_paused().unwrap_or(false).then_some("QEMU")
    }

    fn last_words(&mut self) -> Option<String> {
        let end = match self.wait(END) {
            None => "the guest is still running".to_owned(),
            Some(Some(0)) => "the guest ended".to_owned(),
            Some(Some(code)) => format!("QEMU ended with exit code {code}"),
            Some(None) => "QEMU was killed by a signal".to_owned(),
        };
        let qemu = last_lines(&self.qemu.stderr(), 8);
        let qemu = if qemu.is_empty() { String::new() } else { format!("; QEMU said: {qemu}") };
        if self.qemu.try_wait().is_ok_and(|end| end.is_some()) {
            self.console.await_rest();
        }
        Some(format!("{end}{qemu}{}", self.console.last_words()))
    }

    fn stop(&mut self) {
        if self.wait(STOP_TIMEOUT).is_none() {
            self.qemu.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn a_thread_outside_of_qemu_is_neither_placed_nor_made_real_time() {
        let machine = Memory::new().file("/proc/40/task/41/comm", "CPU 0/TCG").file("/proc/40/task/41", "");
        assert_eq!(own_threads(40, vec![(0, 41)], &machine).unwrap(), [(0, 41)]);
        let error = own_threads(40, vec![(0, 41), (1, 1)], &machine).unwrap_err();
        assert!(error.to_string().contains("thread 1 as vCPU 1"), "{error}");
    }
}
