//! This machine, but some of its files are others.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tactus_model::CpuSet;
use tactus_model::threads::Policy;
use tactus_system::{Child, Finished, Invocation, Real, System};

/// This machine with other files to look at. Whatever is done is done to the machine.
#[derive(Clone)]
pub struct Altered {
    at: Arc<dyn Fn(&Path) -> PathBuf + Send + Sync>,
}

impl Altered {
    /// With the file that `at` says in place of each one.
    pub fn new(at: impl Fn(&Path) -> PathBuf + Send + Sync + 'static) -> Self {
        Self { at: Arc::new(at) }
    }

    /// Its processor claims virtualization and /dev/kvm seems to open.
    pub fn claims_kvm() -> Self {
        let cpuinfo = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cpuinfo-vmx.txt");
        Self::new(move |path| match path.to_str() {
            Some("/proc/cpuinfo") => cpuinfo.into(),
            Some("/dev/kvm") => "/dev/null".into(),
            _ => path.to_owned(),
        })
    }
}

impl System for Altered {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Real.read(&(self.at)(path))
    }

    fn exists(&self, path: &Path) -> bool {
        Real.exists(&(self.at)(path))
    }

    fn opens(&self, path: &Path) -> bool {
        Real.opens(&(self.at)(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        Real.list(&(self.at)(path))
    }

    fn share(&self) -> Arc<dyn System> {
        Arc::new(self.clone())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        Real.write(path, bytes)
    }

    fn install(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        Real.install(path, bytes, mode)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        Real.append(path, bytes)
    }

    fn connect(&self, path: &Path) -> io::Result<UnixStream> {
        Real.connect(path)
    }

    fn listen(&self, path: &Path) -> io::Result<UnixListener> {
        Real.listen(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send>>> {
        Real.lock(path)
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        Real.make_dir(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Real.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Real.rename(from, to)
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        Real.find_program(name)
    }

    fn run(&self, command: &Invocation) -> io::Result<Finished> {
        let mut command = command.clone();
        // A program that is another one's stands in for it.
        if let Some(program) = command.argv.first_mut() {
            *program = (self.at)(Path::new(program)).display().to_string();
        }
        Real.run(&command)
    }

    fn spawn(&self, command: &Invocation) -> io::Result<Box<dyn Child>> {
        Real.spawn(command)
    }

    fn place(&self, thread: u32, cpus: &CpuSet) -> io::Result<()> {
        Real.place(thread, cpus)
    }

    fn make_fifo(&self, thread: u32, priority: u32) -> io::Result<()> {
        Real.make_fifo(thread, priority)
    }

    fn schedule(&self, thread: u32, policy: Policy, priority: u32) -> io::Result<()> {
        Real.schedule(thread, policy, priority)
    }

    fn is_root(&self) -> bool {
        Real.is_root()
    }

    fn variable(&self, name: &str) -> Option<String> {
        Real.variable(name)
    }
}
