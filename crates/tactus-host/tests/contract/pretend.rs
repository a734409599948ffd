//! A machine that claims to have KVM.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tactus_host::system::{Child, Finished, Invocation, Real, System};
use tactus_model::CpuSet;
use tactus_model::threads::Policy;

/// This machine, but its processor claims virtualization and /dev/kvm seems to open.
pub struct ClaimsKvm;

const DEVICE: &str = "/dev/kvm";

impl System for ClaimsKvm {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == Path::new("/proc/cpuinfo") {
            Ok(b"flags\t\t: fpu vmx\n".to_vec())
        } else {
            Real.read(path)
        }
    }

    fn exists(&self, path: &Path) -> bool {
        path == Path::new(DEVICE) || Real.exists(path)
    }

    fn opens(&self, path: &Path) -> bool {
        path == Path::new(DEVICE) || Real.opens(path)
    }

    fn share(&self) -> Arc<dyn System> {
        Arc::new(Self)
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

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        Real.list(path)
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        Real.find_program(name)
    }

    fn run(&self, command: &Invocation) -> io::Result<Finished> {
        Real.run(command)
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
