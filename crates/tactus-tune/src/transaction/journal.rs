//! The journal: every step is written down before it is made, with the former value.
//!
//! JSON lines, each on the disk before the next step. If the last line is cut, its step was not made. The applied
//! steps are those that the journal has as done and not as undone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tactus_model::CpuSet;
use tactus_system::System;

use super::{Action, Damage};

/// The version of the journal's lines.
const FORMAT: u32 = 1;
/// Its name.
pub(super) const FILE: &str = "journal.jsonl";
/// Where a damaged one is kept when all of it that can be read was taken back.
pub const KEPT: &str = "journal.damaged";

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// A plan is about to be carried out.
    Begin(Begin),
    /// This is about to be done.
    Intent {
        /// Its number.
        id: u64,
        /// The boot in which.
        boot: String,
        /// The action.
        action: Action,
    },
    /// It was done, and this is what is read then.
    Done {
        /// Its number.
        id: u64,
        /// Empty where nothing can be read.
        #[serde(default)]
        reads: String,
    },
    /// All was done.
    Commit,
    /// All is about to be taken back.
    Reverting,
    /// It was taken back, or never done, or it is somebody else's now.
    Undone {
        /// Its number.
        id: u64,
    },
}

/// The order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// The version of the lines.
    pub format: u32,
    /// The version of tactus.
    pub tool: String,
    /// Name of the profile.
    pub profile: String,
    /// CPUs for real-time work.
    pub isolated: CpuSet,
    /// Whether the parts for the next boot were asked for.
    pub persist: bool,
    /// See `Choice`.
    #[serde(default)]
    pub only: Vec<String>,
    /// See `Choice`.
    #[serde(default)]
    pub without: Vec<String>,
    /// See `Choice`.
    #[serde(default)]
    pub with: Vec<String>,
    /// See `Choice`.
    #[serde(default)]
    pub plain: bool,
    /// See `Choice`.
    #[serde(default)]
    pub own_irq: Vec<u32>,
    /// See `Choice`.
    #[serde(default)]
    pub move_irq: Vec<u32>,
}

/// A step of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub id: u64,
    /// The boot in which it was done.
    pub boot: String,
    /// The action.
    pub action: Action,
    /// The value that was read after it was done; `None`: it is unknown whether it was done.
    pub reads: Option<String>,
    /// Whether it belongs to a transaction that was not finished.
    pub unfinished: bool,
}

/// The settings that files of ours make again at every boot: parts of /proc and /sys by their paths.
#[derive(Debug, Default)]
pub struct Kept(BTreeSet<String>);

impl Kept {
    /// By the files among these steps.
    #[must_use]
    pub fn of(entries: &[Entry]) -> Self {
        let sysctl = |line: &str| line.split_once(" = ").map(|(name, _)| format!("/proc/sys/{name}"));
        let tmpfiles = |line: &str| Some(line.strip_prefix("w ")?.split(' ').next()?.to_owned());
        let of = |entry: &Entry| match &entry.action {
            Action::Install { then, .. } => {
                then.lines().flat_map(|line| [sysctl(line), tmpfiles(line)]).flatten().collect()
            }
            _ => Vec::new(),
        };
        Self(entries.iter().flat_map(of).collect())
    }

    /// Whether one of them sets what this step has set.
    #[must_use]
    pub fn has(&self, entry: &Entry) -> bool {
        matches!(&entry.action, Action::Write { path, .. } if self.0.contains(path))
    }
}

/// How far a journal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is applied.
    #[default]
    Nothing,
    /// Something was being done, and not finished.
    Applying,
    /// All was done.
    Applied,
    /// It was being taken back.
    Reverting,
}

/// The contents of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The last order.
    pub begin: Option<Begin>,
    /// The applied steps, oldest first.
    pub entries: Vec<Entry>,
    /// How far it is.
    pub phase: Phase,
    /// Whether an earlier transaction was finished before the one that was not.
    pub earlier: bool,
    /// The numbers of its whole lines that cannot be read.
    pub unreadable: Vec<usize>,
    /// How many steps were done whose description cannot be read.
    pub lost: usize,
    next: u64,
}

/// The journal of a system.
pub struct Journal<'a> {
    system: &'a dyn System,
    path: PathBuf,
    next: u64,
    /// A cut line lies at the end, which the next one must not continue.
    cut: bool,
    damage: Option<Damage>,
}

impl Log {
    /// Reads a journal. Lines that cannot be read are passed over, and counted.
    ///
    /// # Errors
    /// When a later version of tactus has written it.
    pub fn parse(text: &str) -> io::Result<Self> {
        let mut log = Self::default();
        // Steps by their number, and how many were there when all was done.
        let (mut places, mut finished) = (BTreeMap::<u64, Vec<usize>>::new(), 0);
        let mut gone = BTreeSet::new();
        for (line, number) in text.split_inclusive('\n').zip(1..) {
            let Ok(read) = serde_json::from_str::<Line>(line) else {
                if line.ends_with('\n') && !line.trim().is_empty() {
                    log.unreadable.push(number);
                }
                continue;
            };
            match read {
                Line::Begin(begin) if begin.format > FORMAT => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("tactus {} wrote it, a later version than this one", begin.tool),
                    ));
                }
                Line::Begin(begin) => {
                    log.earlier = log.phase == Phase::Applied;
                    (log.begin, log.phase) = (Some(begin), Phase::Applying);
                }
                Line::Intent { id, boot, action } => {
                    // Every transaction begins with a separate line: that of this one could not be read.
                    log.earlier = log.phase == Phase::Applied || log.earlier;
                    log.phase = Phase::Applying;
                    log.next = log.next.max(id.saturating_add(1));
                    places.entry(id).or_default().push(log.entries.len());
                    log.entries.push(Entry { id, boot, action, reads: None, unfinished: true });
                }
                Line::Done { id, reads } => match places.get(&id).and_then(|places| places.first()) {
                    Some(place) => log.entries[*place].reads = Some(reads),
                    None => {
                        log.lost += 1;
                        log.next = log.next.max(id.saturating_add(1));
                    }
                },
                Line::Commit => {
                    log.phase = Phase::Applied;
                    finished = log.entries.len();
                }
                Line::Reverting => log.phase = Phase::Reverting,
                Line::Undone { id } => gone.extend(places.remove(&id).unwrap_or_default()),
            }
        }
        log.entries.iter_mut().take(finished).for_each(|entry| entry.unfinished = false);
        let mut place = 0..;
        log.entries.retain(|_| place.next().is_none_or(|place| !gone.contains(&place)));
        Ok(log)
    }

    /// The unreadable part, if it matters. A line that was cut before its step was made does not.
    fn damage(&self, path: &Path) -> Option<Damage> {
        let nameless = self.begin.is_none();
        let damaged = !self.unreadable.is_empty() && (nameless || self.lost > 0);
        damaged.then(|| Damage {
            path: path.to_owned(),
            lines: self.unreadable.clone(),
            nameless,
            lost: self.lost,
            steps: self.entries.len(),
        })
    }
}

impl<'a> Journal<'a> {
    /// Opens the journal in a directory, and reads what it says.
    ///
    /// # Errors
    /// When it is there and cannot be read, or somebody else could have written it.
    pub fn open(system: &'a dyn System, dir: &Path) -> io::Result<(Self, Log)> {
        let path = dir.join(FILE);
        let text = match system.read_own(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(at(&path, &error)),
        };
        let log = Log::parse(&text).map_err(|error| at(&path, &error))?;
        let cut = !text.is_empty() && !text.ends_with('\n');
        let damage = log.damage(&path);
        Ok((Self { system, path, next: log.next, cut, damage }, log))
    }

    /// The unreadable part, if it matters.
    #[must_use]
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    fn write(&mut self, lines: &[Line]) -> io::Result<()> {
        let mut bytes = if self.cut { b"\n".to_vec() } else { Vec::new() };
        for line in lines {
            serde_json::to_writer(&mut bytes, line)?;
            bytes.push(b'\n');
        }
        // An append that fails may leave a cut line.
        self.cut = true;
        self.system.append(&self.path, &bytes).map_err(|error| at(&self.path, &error))?;
        self.cut = false;
        Ok(())
    }

    /// A plan is about to be carried out.
    ///
    /// # Errors
    /// When it cannot be written down, here and below: it must then not be done.
    pub fn begin(&mut self, mut begin: Begin) -> io::Result<()> {
        begin.format = FORMAT;
        begin.tool = env!("CARGO_PKG_VERSION").into();
        self.write(&[Line::Begin(begin)])
    }

    /// These are about to be done. Returns the number of the first.
    ///
    /// # Errors
    /// See [`Journal::begin`].
    pub fn intend(&mut self, boot: &str, actions: &[&Action]) -> io::Result<u64> {
        let first = self.next;
        let lines: Vec<Line> = (first..)
            .zip(actions)
            .map(|(id, action)| Line::Intent { id, boot: boot.to_owned(), action: (*action).clone() })
            .collect();
        self.next = lines.len().try_into().map_or(u64::MAX, |count: u64| first.saturating_add(count));
        self.write(&lines)?;
        Ok(first)
    }

    /// These were done, and what is read then.
    ///
    /// # Errors
    /// See [`Journal::begin`].
    pub fn done(&mut self, all: Vec<(u64, String)>) -> io::Result<()> {
        let lines: Vec<Line> = all.into_iter().map(|(id, reads)| Line::Done { id, reads }).collect();
        self.write(&lines)
    }

    /// All was done.
    ///
    /// # Errors
    /// See [`Journal::begin`].
    pub fn commit(&mut self) -> io::Result<()> {
        self.write(&[Line::Commit])
    }

    /// All is about to be taken back.
    ///
    /// # Errors
    /// See [`Journal::begin`].
    pub fn reverting(&mut self) -> io::Result<()> {
        self.write(&[Line::Reverting])
    }

    /// These were taken back.
    ///
    /// # Errors
    /// When it cannot be written down: they are then taken back twice, which is harmless.
    pub fn undone(&mut self, ids: &[u64]) -> io::Result<()> {
        let lines: Vec<Line> = ids.iter().map(|id| Line::Undone { id: *id }).collect();
        self.write(&lines)
    }

    /// Nothing is applied any more. A damaged journal is kept, because its unreadable lines may be needed yet.
    ///
    /// # Errors
    /// When the file cannot be removed, or moved.
    pub fn close(self) -> io::Result<()> {
        let closed = match self.damage {
            None => self.system.remove(&self.path),
            Some(_) => self.system.rename(&self.path, &self.path.with_file_name(KEPT)),
        };
        match closed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(&self.path, &error)),
            _ => Ok(()),
        }
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_a_cut_line_is_no_obstacle() {
        let machine = Memory::new();
        let dir = Path::new("/var/lib/tactus/tune");
        let action = Action::Run { now: None, back: Some(vec!["update-grub".into()]) };
        let (mut journal, log) = Journal::open(&machine, dir).unwrap();
        assert_eq!(log.phase, Phase::Nothing);
        journal.begin(Begin { profile: "realtime".into(), ..Begin::default() }).unwrap();
        journal.intend("boot-1", &[&action, &action]).unwrap();
        journal.done(vec![(0, String::new())]).unwrap();
        machine.append(&dir.join("journal.jsonl"), b"{\"commit").unwrap();
        let (mut journal, log) = Journal::open(&machine, dir).unwrap();
        assert_eq!((log.phase, log.entries.len()), (Phase::Applying, 2));
        assert_eq!((log.entries[0].reads.is_some(), log.entries[1].reads.is_some()), (true, false));
        assert_eq!(journal.intend("boot-1", &[&action]).unwrap(), 2, "numbers go on");
        journal.undone(&[0, 1]).unwrap();
        journal.commit().unwrap();
        let (_, log) = Journal::open(&machine, dir).unwrap();
        assert_eq!((log.phase, log.entries.len(), log.entries[0].unfinished), (Phase::Applied, 1, false));
    }

    #[test]
    fn steps_of_one_number_are_taken_back_together_and_what_came_after_the_end_is_unfinished() {
        let step = |id| {
            format!(
                "{{\"intent\":{{\"id\":{id},\"boot\":\"b\",\"action\":{{\"run\":{{\"now\":null,\"back\":null}}}}}}}}\n"
            )
        };
        let text =
            [&*step(0), &*step(1), "{\"done\":{\"id\":1}}\n", "\"commit\"\n", &*step(1), &*step(2)].concat();
        let log = Log::parse(&text).unwrap();
        let found =
            |log: &Log| log.entries.iter().map(|entry| (entry.id, entry.unfinished)).collect::<Vec<_>>();
        assert_eq!(found(&log), [(0, false), (1, false), (1, true), (2, true)], "{log:?}");
        assert!(log.entries[1].reads.is_some() && log.entries[2].reads.is_none());
        let log = Log::parse(&(text + "{\"undone\":{\"id\":1}}\n" + &step(1))).unwrap();
        assert_eq!(found(&log), [(0, false), (2, true), (1, true)]);
    }

    #[test]
    fn a_journal_of_a_later_version_is_not_touched() {
        let text = "{\"begin\":{\"format\":2,\"tool\":\"9.0.0\",\"profile\":\"x\",\"isolated\":\"1\",\"persist\":false}}";
        let error = Log::parse(text).unwrap_err().to_string();
        assert!(error.contains("tactus 9.0.0 wrote it"), "{error}");
    }

    #[test]
    fn a_journal_that_somebody_else_could_have_written_is_not_believed() {
        use tactus_system::Real;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let text = b"{\"begin\":{\"format\":1,\"tool\":\"x\",\"profile\":\"x\",\"isolated\":\"1\",\"persist\":false}}\n";
        Real.install(&path, text, 0o666).unwrap();
        let error = Journal::open(&Real, dir.path()).err().expect("it is refused").to_string();
        assert!(error.contains("journal.jsonl: it is not trusted: others may write to it"), "{error}");
        Real.install(&path, text, 0o600).unwrap();
        assert_eq!(Journal::open(&Real, dir.path()).unwrap().1.phase, Phase::Applying);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "([{}\":,a-z0-9\n]|\"begin\"|\"intent\"|\"id\"){0,80}") {
            let _ = Log::parse(&text);
        }
    }
}
