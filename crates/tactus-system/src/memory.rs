//! A machine that is not there: files in memory, commands with known answers. For tests, of this
//! crate and of others.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tactus_model::CpuSet;
use tactus_model::threads::Policy;

use super::{Child, Finished, Invocation, System};

/// A machine in memory. Clones are the same machine.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, Vec<u8>>,
    links: BTreeMap<PathBuf, PathBuf>,
    opens: BTreeSet<PathBuf>,
    others: BTreeSet<PathBuf>,
    programs: BTreeMap<String, PathBuf>,
    answers: Vec<(Vec<String>, Finished)>,
    variables: BTreeMap<String, String>,
    calls: Vec<Invocation>,
    placed: Vec<(u32, CpuSet)>,
    fifo: Vec<(u32, u32)>,
    scheduled: Vec<(u32, Policy, u32)>,
    locks: Arc<Mutex<BTreeSet<PathBuf>>>,
    root: bool,
}

impl Memory {
    /// A machine with nothing on it, whose user is not root.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the user root.
    #[must_use]
    pub fn root(self) -> Self {
        self.state().root = true;
        self
    }

    /// Adds a link, which only [`System::link`] sees.
    #[must_use]
    pub fn links(self, path: impl Into<PathBuf>, to: impl Into<PathBuf>) -> Self {
        self.state().links.insert(path.into(), to.into());
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn file(self, path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        self.state().files.insert(path.into(), bytes.into());
        self
    }

    /// Adds a device that can be opened.
    #[must_use]
    pub fn device(self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.state().opens.insert(path.clone());
        self.file(path, "")
    }

    /// Gives a file or directory to another user.
    #[must_use]
    pub fn of_others(self, path: impl Into<PathBuf>) -> Self {
        self.state().others.insert(path.into());
        self
    }

    /// Adds a program, in `/usr/bin`.
    #[must_use]
    pub fn program(self, name: &str) -> Self {
        let path = Path::new("/usr/bin").join(name);
        self.state().programs.insert(name.into(), path.clone());
        self.file(path, "")
    }

    /// Sets a variable of the process's environment.
    #[must_use]
    pub fn set(self, name: &str, value: &str) -> Self {
        self.state().variables.insert(name.into(), value.into());
        self
    }

    /// Commands that begin with these words end so; the last that was said counts.
    #[must_use]
    pub fn answer(self, words: &[&str], code: i32, stdout: &str, stderr: &str) -> Self {
        let finished = Finished { code: Some(code), stdout: stdout.into(), stderr: stderr.into() };
        self.state().answers.push((words.iter().map(|word| (*word).to_owned()).collect(), finished));
        self
    }

    /// The commands that were run or started, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Vec<String>> {
        self.state().calls.iter().map(|call| call.argv.clone()).collect()
    }

    /// The same, with all that was said about them.
    #[must_use]
    pub fn invocations(&self) -> Vec<Invocation> {
        self.state().calls.clone()
    }

    /// The threads that were placed, in order.
    #[must_use]
    pub fn placed(&self) -> Vec<(u32, String)> {
        self.state().placed.iter().map(|(thread, cpus)| (*thread, cpus.to_string())).collect()
    }

    /// The threads that were given SCHED_FIFO, with their priority, in order.
    #[must_use]
    pub fn fifo(&self) -> Vec<(u32, u32)> {
        self.state().fifo.clone()
    }

    /// The threads that were given a policy, in order.
    #[must_use]
    pub fn scheduled(&self) -> Vec<(u32, Policy, u32)> {
        self.state().scheduled.clone()
    }
}

/// A lock that is taken.
struct Held {
    locks: Arc<Mutex<BTreeSet<PathBuf>>>,
    path: PathBuf,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
    }
}

fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file", path.display()))
}

impl System for Memory {
    fn believed(&self, path: &Path) -> io::Result<PathBuf> {
        if self.state().others.contains(path) {
            let words = format!("it is not trusted: {} belongs to user 12345", path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
        }
        if self.exists(path) { Ok(path.to_owned()) } else { Err(missing(path)) }
    }

    fn link(&self, path: &Path) -> io::Result<PathBuf> {
        self.state().links.get(path).cloned().ok_or_else(|| missing(path))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.state().files.get(path).cloned().ok_or_else(|| missing(path))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.state().files.insert(path.into(), bytes.into());
        Ok(())
    }

    fn install(&self, path: &Path, bytes: &[u8], _mode: u32) -> io::Result<()> {
        self.write(path, bytes)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.state().files.entry(path.into()).or_default().extend_from_slice(bytes);
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send>>> {
        let locks = Arc::clone(&self.state().locks);
        let free = locks.lock().unwrap_or_else(PoisonError::into_inner).insert(path.into());
        Ok(free.then(|| Box::new(Held { locks, path: path.into() }) as Box<dyn Send>))
    }

    fn make_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.state().files.retain(|file, _| !file.starts_with(path));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let moved: Vec<PathBuf> = state.files.keys().filter(|file| file.starts_with(from)).cloned().collect();
        if moved.is_empty() {
            return Err(missing(from));
        }
        for file in moved {
            let rest = file.strip_prefix(from).unwrap_or(&file).to_owned();
            let target = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            if let Some(bytes) = state.files.remove(&file) {
                state.files.insert(target, bytes);
            }
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.state();
        let below = state.files.keys().filter_map(|file| file.strip_prefix(path).ok());
        let entries: BTreeSet<PathBuf> =
            below.filter_map(|rest| rest.components().next()).map(|first| path.join(first)).collect();
        if entries.is_empty() { Err(missing(path)) } else { Ok(entries.into_iter().collect()) }
    }

    fn exists(&self, path: &Path) -> bool {
        self.state().files.keys().any(|file| file.starts_with(path))
    }

    fn opens(&self, path: &Path) -> bool {
        self.state().opens.contains(path)
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.state().programs.get(name).cloned()
    }

    fn run(&self, command: &Invocation) -> io::Result<Finished> {
        let mut state = self.state();
        state.calls.push(command.clone());
        let answer = state.answers.iter().rev().find(|(words, _)| command.argv.starts_with(words));
        answer.map(|(_, finished)| finished.clone()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("{}: no such program", command.argv.join(" ")))
        })
    }

    fn spawn(&self, command: &Invocation) -> io::Result<Box<dyn Child>> {
        self.state().calls.push(command.clone());
        Err(io::Error::new(io::ErrorKind::Unsupported, "a machine in memory runs nothing"))
    }

    fn place(&self, thread: u32, cpus: &CpuSet) -> io::Result<()> {
        self.state().placed.push((thread, cpus.clone()));
        Ok(())
    }

    fn make_fifo(&self, thread: u32, priority: u32) -> io::Result<()> {
        self.state().fifo.push((thread, priority));
        Ok(())
    }

    fn schedule(&self, thread: u32, policy: Policy, priority: u32) -> io::Result<()> {
        self.state().scheduled.push((thread, policy, priority));
        Ok(())
    }

    fn is_root(&self) -> bool {
        self.state().root
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.state().variables.get(name).cloned()
    }

    fn share(&self) -> Arc<dyn System> {
        Arc::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_answers_are_those_that_were_given() {
        let machine =
            Memory::new().file("/a/b", "x").file("/a/c/d", "y").answer(&["tool", "-v"], 0, "1.2", "");
        assert_eq!(machine.list(Path::new("/a")).unwrap(), [PathBuf::from("/a/b"), "/a/c".into()]);
        assert_eq!(machine.run(&Invocation::new(["tool", "-v", "x"])).unwrap().text(), "1.2");
        assert!(machine.run(&Invocation::new(["other"])).is_err());
        assert_eq!(machine.calls().len(), 2);
        machine.rename(Path::new("/a"), Path::new("/z")).unwrap();
        assert_eq!(machine.text("/z/c/d").as_deref(), Some("y"));
    }
}
