//! A machine in memory that behaves as a kernel does where it matters, and that can be killed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;
use tactus_model::CpuSet;
use tactus_model::threads::Policy;

use tactus_system::{Child, Finished, Invocation, Memory, System, UNPLACED};

/// The fate of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The step is refused, and the others continue.
    Refused,
    /// The process dies before the step.
    DeadBefore,
    /// The process dies after the step.
    DeadAfter,
    /// The process dies in the step: a file that is appended to is cut.
    Torn,
}

/// The machine.
#[derive(Clone)]
pub struct Kernel {
    pub memory: Memory,
    steps: Arc<AtomicUsize>,
    fate: Option<(usize, Fate)>,
    dead: Arc<AtomicUsize>,
}

const STAT: &str = "S 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 -5 0 1 0 4 0 0 18446744073709551615 0 0 0 0 0 0 0 \
                    2147483647 0 0 0 0 17 1";

impl Kernel {
    pub fn new(memory: Memory) -> Self {
        Self { memory, steps: Arc::default(), fate: None, dead: Arc::default() }
    }

    /// The same machine, whose next process meets its fate at a step.
    pub fn with_fate(&self, step: usize, fate: Fate) -> Self {
        Self { fate: Some((step, fate)), ..Self::new(self.memory.clone()) }
    }

    /// How many steps were taken.
    pub fn steps(&self) -> usize {
        self.steps.load(Ordering::Relaxed)
    }

    /// Adds a thread.
    pub fn thread(self, tid: u32, name: &str, policy: u32, priority: u32, cpus: &str) -> Self {
        let stat = format!("{tid} ({name}) {STAT} {priority} {policy} 0 0\n");
        let status = format!("Name:\t{name}\nCpus_allowed_list:\t{cpus}\n");
        let memory = self
            .memory
            .clone()
            .file(format!("/proc/{tid}/stat"), stat)
            .file(format!("/proc/{tid}/status"), status);
        Self { memory, ..self }
    }

    /// Takes a step.
    fn step(&self, torn: impl FnOnce(), act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let killed = || Err(io::Error::other("killed"));
        if self.dead.load(Ordering::Relaxed) > 0 {
            return killed();
        }
        let number = self.steps.fetch_add(1, Ordering::Relaxed);
        match self.fate {
            Some((at, fate)) if at == number => {
                match fate {
                    Fate::Refused => return Err(Errno::INVAL.into()),
                    Fate::DeadBefore => {}
                    Fate::DeadAfter => act()?,
                    Fate::Torn => torn(),
                }
                self.dead.store(1, Ordering::Relaxed);
                killed()
            }
            _ => act(),
        }
    }

    /// The effect of a write to a file of the kernel.
    fn store(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let value = String::from_utf8_lossy(bytes).trim().to_owned();
        let name = path.to_str().unwrap_or_default();
        match name {
            "/sys/kernel/mm/transparent_hugepage/enabled" => {
                let words = ["always", "madvise", "never"];
                if !words.contains(&value.as_str()) {
                    return Err(Errno::INVAL.into());
                }
                let text =
                    words.map(|word| if word == value { format!("[{word}]") } else { word.to_owned() });
                return self.memory.write(path, format!("{}\n", text.join(" ")).as_bytes());
            }
            "/proc/sys/vm/dirty_ratio" => self.memory.write(Path::new("/proc/sys/vm/dirty_bytes"), b"0\n")?,
            "/proc/sys/vm/dirty_bytes" => self.memory.write(Path::new("/proc/sys/vm/dirty_ratio"), b"0\n")?,
            // All of it is off: neither takes a 1.
            "/proc/sys/kernel/soft_watchdog"
                if self.memory.text("/proc/sys/kernel/watchdog").is_some_and(|all| all.trim() == "0") =>
            {
                return self.memory.write(path, b"0\n");
            }
            "/proc/irq/9/smp_affinity_list" => return Err(Errno::IO.into()),
            _ => {}
        }
        self.memory.write(path, format!("{value}\n").as_bytes())
    }

    fn edit(&self, path: &str, edit: impl FnOnce(String) -> String) -> io::Result<()> {
        let text = self.memory.text(path).ok_or(Errno::SRCH)?;
        self.memory.write(Path::new(path), edit(text).as_bytes())
    }
}

impl System for Kernel {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.memory.read(path)
    }
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.step(|| {}, || self.store(path, bytes))
    }
    fn install(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let unplaced = || {
            let part = path.with_file_name(format!("{UNPLACED}x"));
            drop(self.memory.install(&part, &bytes[..bytes.len() / 2], mode));
        };
        self.step(unplaced, || self.memory.install(path, bytes, mode))
    }
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let torn = || drop(self.memory.append(path, &bytes[..bytes.len() / 2]));
        self.step(torn, || self.memory.append(path, bytes))
    }
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send>>> {
        self.memory.lock(path)
    }
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.memory.make_dir(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(|| {}, || self.memory.remove(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|| {}, || self.memory.rename(from, to))
    }
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.memory.list(path)
    }
    fn exists(&self, path: &Path) -> bool {
        self.memory.exists(path)
    }
    fn opens(&self, path: &Path) -> bool {
        self.memory.opens(path)
    }
    fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.memory.find_program(name)
    }
    fn run(&self, command: &Invocation) -> io::Result<Finished> {
        let mut finished = Finished { code: Some(0), ..Finished::default() };
        self.step(
            || {},
            || {
                if command.argv.first().is_some_and(|word| word == "update-grub") {
                    // The boot menu is made from the files that are there.
                    let ours = self.memory.text("/etc/default/grub.d/50-tactus.cfg").unwrap_or_default();
                    let theirs = self.memory.text("/etc/default/grub").unwrap_or_default();
                    self.memory.write(Path::new("/boot/grub/grub.cfg"), (theirs + &ours).as_bytes())?;
                } else {
                    finished = self.memory.run(command).unwrap_or(finished.clone());
                }
                Ok(())
            },
        )?;
        Ok(finished)
    }
    fn spawn(&self, command: &Invocation) -> io::Result<Box<dyn Child>> {
        self.memory.spawn(command)
    }
    fn place(&self, thread: u32, cpus: &CpuSet) -> io::Result<()> {
        let change = |text: String| {
            let (front, _) = text.split_once("Cpus_allowed_list:").unwrap_or((&text, ""));
            format!("{front}Cpus_allowed_list:\t{cpus}\n")
        };
        self.step(|| {}, || self.edit(&format!("/proc/{thread}/status"), change))
    }
    fn make_fifo(&self, thread: u32, priority: u32) -> io::Result<()> {
        self.schedule(thread, Policy::Fifo, priority)
    }
    fn schedule(&self, thread: u32, policy: Policy, priority: u32) -> io::Result<()> {
        let number = if policy == Policy::Fifo { 1 } else { 0 };
        let change = |text: String| {
            let (front, _) = text.rsplit_once(')').unwrap_or((&text, ""));
            format!("{front}) {STAT} {priority} {number} 0 0\n")
        };
        self.step(|| {}, || self.edit(&format!("/proc/{thread}/stat"), change))
    }
    fn is_root(&self) -> bool {
        self.memory.is_root()
    }
    fn variable(&self, name: &str) -> Option<String> {
        self.memory.variable(name)
    }
    fn share(&self) -> Arc<dyn System> {
        Arc::new(self.clone())
    }
}
