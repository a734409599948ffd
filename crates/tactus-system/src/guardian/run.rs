//! The run's end of the guardian.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tactus_model::message::Note;
use tactus_model::undo::{Entry, MARKER, Undo, undo};
use tracing::{debug, info, warn};

use super::actions::SystemActions;
use super::journal::Journal;
use super::recover::undo_rest;
use super::warnings::Warnings;
use crate::probe;
use crate::{Child, Invocation, Remote, System, cache_dir, state_dir};

/// How long the guardian may take at the end of a run.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// The run's end of the guardian. Clones are the same run.
#[derive(Clone)]
pub struct Guardian {
    inner: Arc<Inner>,
}

struct Inner {
    system: Arc<dyn System>,
    id: String,
    state: Mutex<State>,
    warnings: Warnings,
}

struct State {
    ledger: Ledger,
    /// The pipe whose end tells the guardian that the run is over.
    pipe: Option<Box<dyn Write + Send>>,
    process: Option<Box<dyn Child>>,
    next: u64,
}

/// The guardian died before its run ended: nothing more can be promised.
#[derive(Debug)]
struct Gone(String);

impl fmt::Display for Gone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Error for Gone {}

/// Whether this error says that the run's guardian died.
#[must_use]
pub fn has_gone(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<Gone>)
}

/// How a guardian ended.
#[derive(Debug)]
pub struct Ended {
    /// The warnings that have not been taken yet, and the changes that the guardian could not undo.
    pub notes: Vec<Note>,
    /// It was killed, and the run itself undid its changes.
    pub killed: Option<io::Error>,
}

/// The place where promises are recorded.
enum Ledger {
    /// A file of this machine, for its guardian.
    Journal(Journal),
    /// The probe of another system, which keeps the promises when its session ends.
    Probe(Remote),
}

impl Guardian {
    /// Begins a run: makes its journal and starts its guardian.
    ///
    /// # Errors
    /// When the journal cannot be written or the guardian cannot be started.
    pub fn start(system: &dyn System) -> io::Result<Self> {
        let id = run_id(system);
        let dir = state_dir(system)?;
        system.make_own_dir(&dir).map_err(|error| at(&dir, &error))?;
        let path = dir.join(format!("{id}.jsonl"));
        // Before the journal: a run killed between journal and guardian would leave a journal to the next command.
        let program = probe::installed(system)?;
        let journal = Journal::create(&path).map_err(|error| at(&path, &error))?;
        let words = [
            program.display().to_string(),
            "guardian".into(),
            "--journal".into(),
            path.display().to_string(),
            "--marker".into(),
            id.clone(),
        ];
        // The standard library opens pipes close-on-exec: no other child holds this one open.
        let mut process = system.spawn(&Invocation::new(words))?;
        info!(run = id, journal = %path.display(), "the guardian of the run has started");
        let pipe = process.take_stdin();
        let state = State { ledger: Ledger::Journal(journal), pipe, process: Some(process), next: 0 };
        Self::begin(system, id, state, Warnings::default())
    }

    /// The guardian of what this run makes on the system of one of its environments: that one's probe,
    /// which takes everything back when its session ends. `place` becomes part of the names.
    ///
    /// # Errors
    /// When the probe cannot be told.
    pub fn within(&self, system: &Remote, place: &str) -> io::Result<Self> {
        let id = format!("{}-{}", self.id(), tactus_model::bundle::slug(place));
        let state = State { ledger: Ledger::Probe(system.clone()), pipe: None, process: None, next: 0 };
        Self::begin(system, id, state, self.warnings().clone())
    }

    fn begin(system: &dyn System, id: String, state: State, warnings: Warnings) -> io::Result<Self> {
        let everybody = Undo::KillMarked(id.clone());
        let inner = Inner { system: system.share(), id, state: Mutex::new(state), warnings };
        inner.write_down(&everybody)?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The name of this run, which is part of the names of all objects that it makes.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// Collects warnings of this run that cannot be reported at once.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        &self.inner.warnings
    }

    /// The variable that every process of the run must have in its environment.
    #[must_use]
    pub fn marker(&self) -> (&'static str, &str) {
        (MARKER, &self.inner.id)
    }

    /// Writes down how a change is undone; call it before the change is made.
    ///
    /// # Errors
    /// When it cannot be written down. The change must then not be made.
    pub fn promise(&self, how: Undo) -> io::Result<Promise> {
        let id = self.inner.write_down(&how)?;
        debug!("promised to undo: {how}");
        Ok(Promise { inner: Arc::clone(&self.inner), id, how: Some(how) })
    }

    /// A private directory of this run, which is removed with the returned value, or by the guardian.
    /// It lies in the cache, because `/run` is often mounted noexec.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn workspace(&self) -> io::Result<Workspace> {
        let system = &*self.inner.system;
        let dir = cache_dir(system)?.join("work").join(self.id());
        let promise = self.promise(Undo::Remove(dir.clone()))?;
        // Kernels and sockets lie there: no other user may exchange them.
        system.make_own_dir(&dir).map_err(|error| at(&dir, &error))?;
        Ok(Workspace { dir, _promise: promise })
    }

    /// Ends the run: the guardian undoes all changes that are left, and ends.
    pub fn finish(self) -> Ended {
        let (pipe, process) = {
            let mut state = self.inner.state();
            (state.pipe.take(), state.process.take())
        };
        drop(pipe);
        let was_killed = process.is_some_and(|process| self.was_killed(process));
        let killed = was_killed.then(|| {
            let words = "the guardian of this run, the process that reverts its changes, was killed";
            io::Error::new(io::ErrorKind::BrokenPipe, Gone(words.into()))
        });
        Ended { notes: self.warnings().take(), killed }
    }

    /// Waits for its end. If it was killed, the run undoes the changes that are left.
    fn was_killed(&self, mut process: Box<dyn Child>) -> bool {
        let until = Instant::now() + STOP_TIMEOUT;
        let code = loop {
            match process.try_wait() {
                Ok(None) if Instant::now() > until => {
                    // The guardian continues: killing it would leave its work half done.
                    std::mem::forget(process);
                    let words =
                        format!("the guardian is still reverting changes after {} s", STOP_TIMEOUT.as_secs());
                    self.warnings().add(Note::obstacle(words, "it continues; the next command checks on it"));
                    return false;
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Ok(Some(code)) => break code,
                Err(_) => break None,
            }
        };
        let hint = match code {
            Some(0) => "search /proc/PID/environ for the run's name to find what is left of it",
            _ => "the next command tries again",
        };
        let said = process.stderr();
        for line in said.lines().filter(|line| !line.trim().is_empty()) {
            let line = line.trim_start_matches("tactus-probe: guardian: ");
            self.warnings().add(Note::obstacle(line, hint));
        }
        if code.is_none() {
            self.take_over();
        }
        code.is_none()
    }

    /// The guardian was killed: the run undoes the changes that are left.
    fn take_over(&self) {
        let mut state = self.inner.state();
        let Ledger::Journal(journal) = &mut state.ledger else { return };
        let left = match undo_rest(journal, &*self.inner.system) {
            Ok(rest) => rest.left,
            // The guardian had removed the journal, and only its end was missing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => vec![error.to_string()],
        };
        let what = "the guardian was killed; the run itself reverted what was left";
        warn!("{what}");
        self.warnings()
            .add(Note::obstacle(what, "a run whose guardian is killed starts nothing more: run it again"));
        for what in left {
            self.warnings().add(Note::obstacle(what, "the next command tries again"));
        }
    }
}

impl Inner {
    /// Whether the changes are made on this machine.
    fn is_here(&self) -> bool {
        matches!(self.state().ledger, Ledger::Journal(_))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_down(&self, how: &Undo) -> io::Result<u64> {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state.tell(&Entry::Undo { id, how: how.clone() })?;
        Ok(id)
    }
}

impl State {
    fn tell(&mut self, entry: &Entry) -> io::Result<()> {
        let line = match &mut self.ledger {
            Ledger::Journal(journal) => journal.write(entry)?,
            Ledger::Probe(system) => return system.tell(entry),
        };
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let told = pipe.write_all(&line).and_then(|()| pipe.flush());
        told.map_err(|error| {
            let words = self.process.as_ref().map(|process| process.stderr()).unwrap_or_default();
            let words = if words.is_empty() { String::new() } else { format!(": {}", words.trim()) };
            io::Error::new(error.kind(), Gone(format!("the guardian has ended ({error}){words}")))
        })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // Dropped without `finish`: the guardian must not be killed, because it undoes the run's changes.
        drop(self.pipe.take());
        if let Some(process) = self.process.take() {
            std::mem::forget(process);
        }
    }
}

/// A promise that a change will be undone. Dropping it undoes the change now.
#[must_use = "dropping a promise takes back what it is about"]
pub struct Promise {
    inner: Arc<Inner>,
    id: u64,
    how: Option<Undo>,
}

impl Promise {
    /// Takes it back now.
    ///
    /// # Errors
    /// When something is left; the guardian will try again at the end of the run.
    pub fn revert(mut self) -> io::Result<()> {
        self.how.take().map_or(Ok(()), |how| self.take_back(&how))
    }

    /// Nothing is left to undo: the changed object has disappeared.
    pub fn forget(mut self) {
        if self.how.take().is_some() {
            self.done();
        }
    }

    /// The code that made the change says that it has been undone. A file with other contents is written back all the
    /// same.
    pub fn confirm(self) {
        match &self.how {
            Some(Undo::Write { path, value }) if self.inner.is_here() => {
                let now = self.inner.system.text(&path.to_string_lossy()).unwrap_or_default();
                let chosen = format!("[{}]", value.trim());
                let holds = now.trim() == value.trim() || now.split_whitespace().any(|word| word == chosen);
                if holds { self.forget() } else { drop(self) }
            }
            _ => self.forget(),
        }
    }

    /// Leaves the undoing to the end of the run, whatever else has ended by then.
    pub fn defer(mut self) {
        self.how = None;
    }

    fn take_back(&self, how: &Undo) -> io::Result<()> {
        undo(how, &SystemActions(&*self.inner.system))
            .inspect(|()| info!("undone: {how}"))
            .inspect_err(|error| warn!(%error, "not undone: {how}"))?;
        self.done();
        Ok(())
    }

    fn done(&self) {
        // If this cannot be written down it is undone twice, which is harmless.
        if let Err(error) = self.inner.state().tell(&Entry::Done { id: self.id }) {
            warn!(%error, "the guardian was not told that change {} is reverted", self.id);
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(how) = self.how.take()
            && let Err(error) = self.take_back(&how)
            // The probe through which it would have been done has done it, or its system is gone.
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            let hint = "tactus tries again at the end of the run";
            self.inner.warnings.add(Note::obstacle(format!("{how} failed: {error}"), hint));
        }
    }
}

/// A private directory of a run. Dropping it removes it.
pub struct Workspace {
    dir: PathBuf,
    _promise: Promise,
}

impl Workspace {
    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Eight hex digits that no other run on this machine has.
fn run_id(system: &dyn System) -> String {
    let random = system.text("/proc/sys/kernel/random/uuid").unwrap_or_default();
    let digits: String = random.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    if digits.len() == 8 { digits } else { format!("{:08x}", std::process::id()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Real;

    #[test]
    fn a_run_whose_guardian_is_killed_takes_back_itself_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let (left, value) = (dir.path().join("left"), dir.path().join("value"));
        Real.make_dir(&left.join("inside")).unwrap();
        Real.write(&value, b"changed").unwrap();
        let guardian = Guardian::start(&Real).unwrap();
        guardian.promise(Undo::Remove(left.clone())).unwrap().defer();
        guardian.promise(Undo::Write { path: value.clone(), value: "before".into() }).unwrap().defer();
        let journal = state_dir(&Real).unwrap().join(format!("{}.jsonl", guardian.id()));
        assert!(Real.exists(&journal));
        let pid = guardian.inner.state().process.as_ref().unwrap().pid();
        Real.hold(pid).unwrap().kill().unwrap();

        let error = loop {
            match guardian.promise(Undo::Remove(left.clone())) {
                Ok(promise) => promise.forget(),
                Err(error) => break error,
            }
        };
        assert!(has_gone(&error) && !has_gone(&error.kind().into()), "{error}");
        let Ended { notes, killed } = guardian.finish();
        assert!(killed.is_some_and(|error| has_gone(&error)));
        assert!(!Real.exists(&left) && !Real.exists(&journal));
        assert_eq!(Real.read(&value).unwrap(), b"before");
        let [note] = &notes[..] else { panic!("{notes:?}") };
        assert_eq!(note.text, "the guardian was killed; the run itself reverted what was left");
    }

    #[test]
    fn a_value_that_was_not_restored_by_its_changer_is_restored_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let value = dir.path().join("value");
        let guardian = Guardian::start(&Real).unwrap();
        let promise =
            || guardian.promise(Undo::Write { path: value.clone(), value: "before".into() }).unwrap();
        for (left, then) in
            [("changed", "before"), ("before\n", "before\n"), ("always [before]", "always [before]")]
        {
            Real.write(&value, left.as_bytes()).unwrap();
            promise().confirm();
            assert_eq!(Real.read(&value).unwrap(), then.as_bytes());
        }
        assert!(guardian.finish().notes.is_empty());
    }
}
