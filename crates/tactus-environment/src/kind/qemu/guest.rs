//! A guest that runs.

use std::io::{self, Cursor, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tactus_model::facts::Facts;
use tactus_model::message::Note;
use tactus_model::{CpuSet, Evidence};
use tactus_system::{Child, Invocation, System, last_lines};

use super::command::Machine;
use super::qmp::{Monitor, threads};
use crate::network::enter;
use crate::support::cannot;
use crate::support::guest::{self, Accel, BootError, Console, Threads, first_byte, listen, settle};
use crate::{Layout, Running, Setting, StartError, Stream};

/// How long QEMU may take to open its sockets; it does so before the guest runs.
const CONNECTION: Duration = Duration::from_secs(15);
/// How long the monitor may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a guest may take to power off after its probe was told to quit. There is nothing in it
/// to lose: what it had to say has been heard.
const STOP_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long QEMU's own end is awaited when its stream has ended.
const END: Duration = Duration::from_secs(2);

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
}

impl Guest {
    /// Starts QEMU and connects to it. With `patience` the guest's first byte is awaited.
    ///
    /// # Errors
    /// When QEMU does not start, or the guest stays silent; with the words of both.
    pub fn boot(
        setting: &Setting<'_>,
        machine: &Machine,
        patience: Option<Duration>,
        notes: &mut Vec<Note>,
    ) -> Result<Self, BootError> {
        let probe = listen(setting.system, &machine.probe)?;
        let monitor = listen(setting.system, &machine.monitor)?;
        let console = Console::keep(listen(setting.system, &machine.console)?, &setting.console)?;
        let mut words = setting.network.map_or_else(Vec::new, |place| enter(place.holder));
        words.extend(machine.words());
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
            accel: machine.accel,
            console,
            layout: setting.layout.clone(),
            measured: setting.measured.clone(),
            housekeeping: setting.housekeeping.clone(),
            notes: Vec::new(),
            vcpus: Vec::new(),
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

    fn ask_vcpus(&self) -> io::Result<Vec<(u32, u32)>> {
        self.monitor.set_read_timeout(Some(ANSWER))?;
        let mut monitor = Monitor::open(&self.monitor, &self.monitor)?;
        let told = threads(&monitor.ask("query-cpus-fast")?);
        own_threads(self.qemu.pid(), told, &*self.system)
    }
}

/// The same, where all of them are QEMU's: whoever has taken it over could name any thread of the machine, which would
/// then be placed and made real-time.
fn own_threads(process: u32, told: Vec<(u32, u32)>, system: &dyn System) -> io::Result<Vec<(u32, u32)>> {
    let own = |thread: u32| system.exists(Path::new(&format!("/proc/{process}/task/{thread}")));
    match told.iter().find(|(_, thread)| !own(*thread)) {
        None => Ok(told),
        Some((vcpu, thread)) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("QEMU names thread {thread} as vCPU {vcpu}, which is none of its own"),
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
            let what = if ended { "QEMU ended at once" } else { "QEMU did not open its sockets" };
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
                format!("the threads of the vCPUs are not known, so that none is pinned: {error}"),
                "report this with QEMU's version",
            )),
        }
        let words = last_lines(&self.qemu.stderr(), 8);
        if !words.is_empty() {
            notes.push(Note::info(format!("QEMU said: {words}")));
        }
        Ok(notes)
    }

    fn vcpus(&mut self) -> Vec<(u32, u32)> {
        self.vcpus.clone()
    }

    fn evidence(&self, _facts: &Facts) -> Evidence {
        guest::evidence(self.accel, &*self.system)
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
    fn a_thread_that_is_none_of_qemus_is_neither_placed_nor_made_real_time() {
        let machine = Memory::new().file("/proc/40/task/41/comm", "CPU 0/TCG").file("/proc/40/task/41", "");
        assert_eq!(own_threads(40, vec![(0, 41)], &machine).unwrap(), [(0, 41)]);
        let error = own_threads(40, vec![(0, 41), (1, 1)], &machine).unwrap_err();
        assert!(error.to_string().contains("thread 1 as vCPU 1"), "{error}");
    }
}
