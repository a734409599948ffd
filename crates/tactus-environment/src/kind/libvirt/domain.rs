//! A domain that tactus created.

use std::io::{self, Cursor, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tactus_model::facts::Facts;
use tactus_model::message::Note;
use tactus_model::undo::Undo;
use tactus_model::{CpuSet, Evidence, plan};
use tactus_system::guardian::Promise;
use tactus_system::{System, last_lines};

use super::threads;
use super::virsh::{Virsh, is_paused};
use super::{document, support};
use crate::support::RtGroup;
use crate::support::cannot;
use crate::support::guest::{self, Accel, Boot, BootError, Console, listen};
use crate::{Layout, Running, Setting, StartError, Stream};

/// How long QEMU may take to connect once libvirt says that it runs.
const CONNECTION: Duration = Duration::from_secs(5);
/// How long a domain may take to end after its probe was told to quit.
const STOP_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long the domain's own end is awaited when its stream has ended.
const END: Duration = Duration::from_secs(2);
/// Where libvirt of the machine keeps what QEMU wrote, one file for each domain that there ever was.
const LOGS: &str = "/var/log/libvirt/qemu";
/// Bytes of its end that are read: a guest may make QEMU say as much as it likes.
const MOST_LOG: u64 = 64 << 10;
/// How libvirt says that a priority was refused.
const NO_PRIORITY: &str = "Cannot set scheduler parameters";

/// A domain that runs. Dropping it destroys it.
pub struct Domain {
    system: Arc<dyn System>,
    /// The plan's table for it, and its name in libvirt.
    spec: plan::Environment,
    name: String,
    process: Option<u32>,
    stream: Option<(Vec<u8>, UnixStream)>,
    accel: Accel,
    console: Console,
    log: PathBuf,
    layout: Layout,
    fifo: CpuSet,
    housekeeping: CpuSet,
    notes: Vec<Note>,
    promises: Vec<Promise>,
}

impl Domain {
    /// Creates the domain. With `patience` its first byte is awaited.
    ///
    /// # Errors
    /// When libvirt refuses, or the guest stays silent; with the words of both.
    pub fn create(
        setting: &Setting<'_>,
        boot: &Boot,
        accel: Accel,
        patience: Option<Duration>,
        notes: &mut Vec<Note>,
    ) -> Result<Self, BootError> {
        let system = setting.system;
        let virsh = Virsh::of(setting.spec, system).map_err(StartError::from)?;
        let name = support::container_name(setting);
        let probe = setting.workspace.join("probe.sock");
        let socket = setting.workspace.join("console.sock");
        let security = document::security(&virsh.ask(&["capabilities"])?);
        let mut fifo = guest::fifo(setting.layout, &setting.measured, &setting.housekeeping);
        let log = Path::new(LOGS).join(format!("{name}.log"));
        let promises = vec![
            setting
                .guardian
                .promise(Undo::Remove(log.clone()))
                .map_err(|error| cannot("the guardian process of tactus cannot be reached", error))?,
            support::promise(setting, virsh.destruction(&name))?,
        ];
        let create = |fifo: &CpuSet| {
            let text = document::write(&document::Domain {
                name: &name,
                boot,
                accel,
                layout: setting.layout,
                fifo,
                housekeeping: &setting.housekeeping,
                console: &socket,
                probe: &probe,
                marker: setting.guardian.marker(),
                security: &security,
            })
            .map_err(|error| cannot("the domain's document", error))?;
            let file = setting.workspace.join("domain.xml");
            system
                .write(&file, text.as_bytes())
                .map_err(|error| cannot(&file.display().to_string(), error))?;
            // A QEMU that libvirt started and gave up may have connected already: each gets its own socket.
            let listener = listen(system, &probe)?;
            let console = Console::keep(listen(system, &socket)?, &setting.console)?;
            virsh.ask(&["create", "--", &file.display().to_string()]).map_err(hinted)?;
            Ok::<_, StartError>((listener, console))
        };
        let (listener, console) = match create(&fifo) {
            Err(error) if !fifo.is_empty() && error.reason.contains(NO_PRIORITY) => {
                notes.push(without_priority(&error.reason, system));
                fifo = CpuSet::default();
                create(&fifo)?
            }
            created => created?,
        };
        // The UUID is new, so only one process should have it; if several have it all the same, none of them is
        // believed.
        let process = threads::process(&name, &virsh.uuid(&name)?, system).ok().flatten();
        let mut domain = Self {
            system: system.share(),
            spec: setting.spec.clone(),
            name,
            process,
            stream: None,
            accel,
            console,
            log,
            layout: setting.layout.clone(),
            fifo,
            housekeeping: setting.housekeeping.clone(),
            notes: Vec::new(),
            promises,
        };
        domain.stream = Some((Vec::new(), domain.accept(&listener)?));
        if let Some(patience) = patience {
            domain.await_first_byte(patience.min(setting.patience))?;
        }
        domain.notes = std::mem::take(notes);
        Ok(domain)
    }

    fn accept(&mut self, listener: &UnixListener) -> Result<UnixStream, StartError> {
        let until = Instant::now() + CONNECTION;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(|error| cannot("the probe's socket", error))?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(cannot("the probe's socket", error)),
            }
            if Instant::now() > until {
                let words = self.last_words().unwrap_or_default();
                return Err(cannot("QEMU did not connect to the probe's socket", words));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn await_first_byte(&mut self, patience: Duration) -> Result<(), BootError> {
        let Some((heard, stream)) = &mut self.stream else { return Ok(()) };
        let Err(why) = guest::first_byte(heard, stream, patience) else { return Ok(()) };
        Err(why.with(self.last_words()))
    }

    fn runs(&self) -> bool {
        self.process.is_some_and(|pid| {
            // A dead process that libvirt has not taken leave of yet has no command line any more.
            let words = self.system.read(Path::new(&format!("/proc/{pid}/cmdline")));
            words.map_or_else(|error| error.kind() == io::ErrorKind::TimedOut, |words| !words.is_empty())
        })
    }

    /// Waits for QEMU's own end.
    fn ends_within(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while self.runs() {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

fn hinted(error: StartError) -> StartError {
    let locks = ["lock", "RLIMIT_MEMLOCK"].iter().any(|word| error.reason.contains(word));
    let hint = locks.then(|| {
        "libvirt's daemon needs CAP_SYS_RESOURCE to lock memory; or leave out `lock_memory`".to_owned()
    });
    StartError { hint: error.hint.or(hint), ..error }
}

/// The note on a domain whose vCPUs are ordinary threads.
fn without_priority(words: &str, system: &dyn System) -> Note {
    let remedy = if RtGroup::of(system).is_some() {
        "this kernel gives every new v1 cpu cgroup a real-time budget of 0 (RT_GROUP_SCHED): write \
cgroup_controllers = [\"cpuset\", \"memory\", \"devices\", \"blkio\", \"cpuacct\"] into /etc/libvirt/qemu.conf and \
restart libvirt's daemon"
    } else {
        "allow libvirt's daemon real-time priority (CAP_SYS_NICE)"
    };
    Note::obstacle(format!("no vCPU got SCHED_FIFO: libvirt reports {words}"), remedy)
}

impl Running for Domain {
    fn take_stream(&mut self) -> Option<Stream> {
        let (heard, stream) = self.stream.take()?;
        let writer = stream.try_clone().ok()?;
        Some(Stream { reader: Box::new(Cursor::new(heard).chain(stream)), writer: Box::new(writer) })
    }

    fn after_hello(&mut self) -> Result<Vec<Note>, StartError> {
        let mut notes = std::mem::take(&mut self.notes);
        match self.process {
            Some(process) => {
                let threads = threads::of(process, &*self.system);
                notes.extend(threads::compare(&threads, &self.layout, &self.fifo, &self.housekeeping));
            }
            None => notes.push(Note::obstacle(
                "the domain's process is not visible here, so the CPUs of its threads are unknown",
                "run tactus where libvirt's daemon runs, not in another PID namespace",
            )),
        }
        Ok(notes)
    }

    fn vcpus(&mut self) -> Vec<(u32, u32)> {
        self.process.map(|process| threads::vcpus(&threads::of(process, &*self.system))).unwrap_or_default()
    }

    fn evidence(&self, _facts: &Facts) -> Evidence {
        guest::evidence(self.accel, &*self.system)
    }

    fn paused(&mut self) -> Option<&'static str> {
        is_paused(&self.spec, &*self.system, &self.name).then_some("libvirt")
    }

    fn last_words(&mut self) -> Option<String> {
        let end = if self.ends_within(END) { "the domain ended" } else { "the domain is still running" };
        if !self.runs() {
            self.console.await_rest();
        }
        let log = self.system.end(&self.log, MOST_LOG).unwrap_or_default();
        let qemu = last_lines(&String::from_utf8_lossy(&log), 4);
        let qemu = if qemu.is_empty() { qemu } else { format!("; libvirt's log of it: {qemu}") };
        Some(format!("{end}{qemu}{}", self.console.last_words()))
    }

    fn stop(&mut self) {
        self.ends_within(STOP_TIMEOUT);
        // Destroying what has ended is no error, and waits until libvirt has cleaned up behind it.
        while let Some(promise) = self.promises.pop() {
            drop(promise);
        }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        while let Some(promise) = self.promises.pop() {
            drop(promise);
        }
    }
}
