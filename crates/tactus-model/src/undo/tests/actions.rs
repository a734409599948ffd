//! The tries, their number and their order, on a system that records all calls.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;

use crate::change::Thread;
use crate::undo::execute::{PAUSE, TRIES};
use crate::undo::processes::{DYING, POLL, SPARED};
use crate::undo::{
    Actions, Held, MARKER, Runtime, Tool, Undo, WORKER, attempt, in_order, is_over, marked, settings_first,
    undo,
};

/// A process and how it takes being killed.
#[derive(Clone)]
struct Process {
    mark: &'static str,
    argument: &'static str,
    /// When it ends by itself.
    ends: Option<Duration>,
    dies: bool,
    /// The process that it forks when it is killed.
    child: Option<u32>,
    /// Which one of its number it is.
    started: u32,
}

/// A system that fails on some paths, and records all calls.
#[derive(Default)]
struct Recorded {
    said: RefCell<Vec<String>>,
    troubles: RefCell<BTreeMap<PathBuf, Vec<ErrorKind>>>,
    processes: RefCell<BTreeMap<u32, Process>>,
    time: Cell<Duration>,
    texts: BTreeMap<PathBuf, &'static str>,
    /// Bytes that were asked for, of the beginnings of files.
    taken: Cell<u64>,
    /// The words before a process's mark.
    before_marks: usize,
    /// Processes whose environment cannot be read, with an action that ends this.
    locked: BTreeMap<u32, fn(&mut BTreeMap<u32, Process>)>,
}

impl Recorded {
    /// The text of a file.
    fn text(mut self, path: &str, text: &'static str) -> Self {
        self.texts.insert(path.into(), text);
        self
    }

    /// Accesses to the path fail this many times.
    fn trouble(self, path: &str, kind: ErrorKind, times: u32) -> Self {
        self.troubles.borrow_mut().insert(path.into(), (0..times).map(|_| kind).collect());
        self
    }

    fn process(self, pid: u32, process: &Process) -> Self {
        self.processes.borrow_mut().insert(pid, process.clone());
        self
    }

    fn ask(&self, verb: &str, path: &Path) -> io::Result<()> {
        self.said.borrow_mut().push(format!("{verb} {}", path.display()));
        match self.troubles.borrow_mut().get_mut(path).and_then(Vec::pop) {
            Some(kind) => Err(kind.into()),
            None => Ok(()),
        }
    }

    fn said(&self) -> Vec<String> {
        std::mem::take(&mut *self.said.borrow_mut())
    }
}

impl Actions for Recorded {
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.ask("remove", path)
    }

    fn remove_empty(&self, path: &Path) -> io::Result<()> {
        self.ask("rmdir", path)
    }

    fn unmount(&self, path: &Path) -> io::Result<()> {
        self.ask("umount", path)
    }

    fn write(&self, path: &Path, value: &[u8]) -> io::Result<()> {
        self.ask(&format!("write {}", String::from_utf8_lossy(value)), path)
    }

    fn run(&self, words: &[String], limit: Duration) -> io::Result<()> {
        self.ask(&format!("within {} s", limit.as_secs()), Path::new(&words.join(" ")))
    }

    fn is_believed(&self, path: &Path) -> io::Result<()> {
        match path.to_str() {
            Some("/tmp/jailhouse" | "/tmp/state") => Err(ErrorKind::PermissionDenied.into()),
            Some("/gone/state") => Err(ErrorKind::NotFound.into()),
            _ => Ok(()),
        }
    }

    fn processes(&self) -> io::Result<Vec<u32>> {
        let now = self.now();
        self.processes.borrow_mut().retain(|_, process| process.ends.is_none_or(|end| now < end));
        Ok(self.processes.borrow().keys().copied().collect())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if let Some(text) = self.texts.get(path) {
            return Ok(text.as_bytes().to_vec());
        }
        let words: Vec<&str> = path.to_str().unwrap().split('/').collect();
        let ["", "proc", pid, file] = words[..] else { return Err(ErrorKind::NotFound.into()) };
        let processes = self.processes.borrow();
        let process = processes.get(&pid.parse().unwrap()).ok_or(ErrorKind::NotFound)?;
        Ok(match file {
            "environ" => {
                format!("A={}\0{MARKER}={}\0", "1".repeat(self.before_marks), process.mark).into_bytes()
            }
            "stat" => format!("7 (program) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0", process.started)
                .into_bytes(),
            _ => format!("program\0{}\0", process.argument).into_bytes(),
        })
    }

    fn beginning(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        self.taken.set(self.taken.get() + most);
        let locked = |pid: &&u32| path == Path::new(&format!("/proc/{pid}/environ"));
        if let Some(pid) = self.locked.keys().find(locked) {
            self.locked[pid](&mut self.processes.borrow_mut());
            return Err(ErrorKind::TimedOut.into());
        }
        let mut bytes = self.read(path)?;
        bytes.truncate(usize::try_from(most).unwrap());
        Ok(bytes)
    }

    fn hold(&self, pid: u32) -> io::Result<Box<dyn Held + '_>> {
        let started = self.processes.borrow().get(&pid).ok_or(ErrorKind::NotFound)?.started;
        Ok(Box::new(Of { system: self, pid, started }))
    }

    fn now(&self) -> Duration {
        self.time.get()
    }

    fn pause(&self, time: Duration) {
        self.time.set(self.time.get() + time);
    }
}

/// A process of a [`Recorded`] system.
struct Of<'a> {
    system: &'a Recorded,
    pid: u32,
    started: u32,
}

impl Held for Of<'_> {
    fn kill(&self) -> io::Result<()> {
        let Self { system, pid, started } = *self;
        let mut processes = system.processes.borrow_mut();
        let process = processes.get(&pid).filter(|process| process.started == started).cloned();
        let process = process.ok_or(ErrorKind::NotFound)?;
        system.said.borrow_mut().push(format!("kill {pid} at {} s", system.now().as_secs()));
        if process.dies {
            processes.remove(&pid);
            if let Some(child) = process.child {
                processes.insert(child, Process { child: None, ..process });
            }
        }
        Ok(())
    }
}

const OURS: Process = Process { mark: "ours", argument: "", ends: None, dies: true, child: None, started: 0 };

fn unmount() -> Undo {
    Undo::Unmount("/m".into())
}

fn module() -> Undo {
    Undo::Tool(Tool::BlockModule)
}

#[test]
fn each_kind_asks_for_one_thing() {
    let system = Recorded::default();
    for how in [
        Undo::Remove("/a".into()),
        Undo::RemoveEmpty("/b".into()),
        unmount(),
        Undo::Write { path: "/c".into(), value: "7".into() },
        module(),
        Undo::KillMarked("nobody".into()),
    ] {
        undo(&how, &system).unwrap();
    }
    assert_eq!(
        system.said(),
        ["remove /a", "rmdir /b", "umount /m", "write 7 /c", "within 20 s modprobe -r preemptirq_delay_test"]
    );
    assert_eq!(system.now(), Duration::ZERO, "nobody was waited for");
}

#[test]
fn what_is_held_is_tried_again_until_it_is_free() {
    let system = Recorded::default().trouble("/b", ErrorKind::ResourceBusy, TRIES - 1);
    undo(&Undo::RemoveEmpty("/b".into()), &system).unwrap();
    assert_eq!(system.said().len(), 20);
    assert_eq!(system.now(), PAUSE * 19);
    let system = Recorded::default().trouble("/b", ErrorKind::ResourceBusy, TRIES);
    let error = undo(&Undo::RemoveEmpty("/b".into()), &system).unwrap_err();
    assert_eq!((error.kind(), system.said().len()), (ErrorKind::ResourceBusy, 20));
}

#[test]
fn what_nobody_may_write_to_is_taken_back_where_it_says_what_it_said() {
    let denied =
        |text| Recorded::default().trouble("/a", ErrorKind::PermissionDenied, TRIES).text("/a", text);
    let how = Undo::Write { path: "/a".into(), value: "default".into() };
    for same in ["default\n", "[default] performance powersave\n"] {
        undo(&how, &denied(same)).unwrap();
    }
    for other in ["performance\n", "default [performance]\n", ""] {
        assert_eq!(undo(&how, &denied(other)).unwrap_err().kind(), ErrorKind::PermissionDenied, "{other}");
    }
}

#[test]
fn what_no_further_try_would_mend_is_not_tried_again() {
    for kind in [ErrorKind::BrokenPipe, ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem] {
        let system = Recorded::default().trouble("/b", kind, 1);
        assert_eq!(undo(&Undo::Remove("/b".into()), &system).unwrap_err().kind(), kind);
        assert_eq!((system.said().len(), system.now()), (1, Duration::ZERO));
    }
}

#[test]
fn what_is_not_there_is_taken_back() {
    let gone = |path| Recorded::default().trouble(path, ErrorKind::NotFound, 1);
    undo(&Undo::Remove("/a".into()), &gone("/a")).unwrap();
    undo(&Undo::RemoveEmpty("/a".into()), &gone("/a")).unwrap();
    undo(&unmount(), &gone("/m")).unwrap();
    undo(&Undo::Write { path: "/a".into(), value: "1".into() }, &gone("/a")).unwrap();
    undo(&module(), &gone("modprobe -r preemptirq_delay_test")).unwrap();
    // Not a mount (any more).
    undo(&unmount(), &Recorded::default().trouble("/m", ErrorKind::InvalidInput, 1)).unwrap();
}

#[test]
fn a_command_that_had_to_be_killed_is_not_done_and_not_repeated() {
    let system = Recorded::default().trouble("modprobe -r preemptirq_delay_test", ErrorKind::TimedOut, 1);
    assert_eq!(undo(&module(), &system).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(system.said().len(), 1);
}

#[test]
fn a_thread_that_has_become_another_one_is_left_as_it_is() {
    let system = Recorded::default().process(7, &OURS);
    for (tid, name, started) in [(7, "program", 0), (7, "another", 0), (8, "program", 0), (7, "program", 1)] {
        let thread = Thread { tid, name: name.into(), started: Some(started) };
        undo(&Undo::Tool(Tool::Scheduling { thread, was: "OTHER 0".into() }), &system).unwrap();
    }
    assert_eq!(system.said(), ["within 20 s chrt --other --pid 0 7"]);
}

#[test]
fn what_a_forged_journal_names_is_not_run() {
    let system = Recorded::default();
    let forged = Tool::PodmanContainer { name: "$(reboot)".into(), hidden: Vec::new() };
    assert_eq!(undo(&Undo::Tool(forged), &system).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(system.said().is_empty());
}

#[test]
fn a_program_and_the_state_of_a_runtime_that_somebody_else_could_have_made_are_not_used() {
    let system = Recorded::default();
    let oci = |state: &str| {
        let (runtime, name) = (Runtime::Crun, "tactus-1".into());
        Undo::Tool(Tool::OciContainer { runtime, state: state.into(), name, hidden: Vec::new() })
    };
    for forged in [Undo::Tool(Tool::Jailhouse { program: "/tmp/jailhouse".into() }), oci("/tmp/state")] {
        assert_eq!(undo(&forged, &system).unwrap_err().kind(), ErrorKind::PermissionDenied, "{forged}");
    }
    undo(&oci("/gone/state"), &system).unwrap();
    assert!(system.said().is_empty());
    undo(&oci("/own/state"), &system).unwrap();
    assert_eq!(system.said(), ["within 20 s crun --root /own/state delete --force tactus-1"]);
}

#[test]
fn a_path_that_is_another_one_for_those_who_undo_is_not_touched() {
    let system = Recorded::default();
    for path in ["work/x", "", "/work/../etc", ".."] {
        for how in [Undo::Remove(path.into()), Undo::Write { path: path.into(), value: "1".into() }] {
            assert_eq!(undo(&how, &system).unwrap_err().kind(), ErrorKind::InvalidInput, "{path}");
        }
    }
    assert!(system.said().is_empty());
}

#[test]
fn one_attempt_never_waits() {
    let system = Recorded::default().trouble("/b", ErrorKind::ResourceBusy, 1).process(7, &OURS);
    assert!(attempt(&Undo::Remove("/b".into()), &system).is_err());
    assert!(attempt(&Undo::KillMarked("ours".into()), &system).is_err());
    assert!(attempt(&module(), &system).is_err());
    assert_eq!((system.said(), system.now()), (vec!["remove /b".to_owned()], Duration::ZERO));
}

#[test]
fn processes_of_a_run_are_killed_with_what_they_fork_and_no_other() {
    let other = Process { mark: "ours-not", ..OURS };
    let system = Recorded::default()
        .process(7, &Process { child: Some(9), ..OURS })
        .process(8, &other)
        .process(9_000, &OURS);
    undo(&Undo::KillMarked("ours".into()), &system).unwrap();
    assert_eq!(system.said(), ["kill 7 at 0 s", "kill 9000 at 0 s", "kill 9 at 0 s"]);
    assert_eq!(system.processes().unwrap(), [8]);
}

/// A user can keep a look waiting, and let a marked process end meanwhile, so that its number becomes another's.
#[test]
fn a_number_that_changes_hands_while_others_are_looked_at_is_not_killed() {
    let changes_hands: fn(&mut BTreeMap<u32, Process>) = |processes| {
        processes.insert(7, Process { mark: "root's", started: 1, ..OURS });
    };
    let mut system = Recorded::default().process(7, &OURS).process(8, &Process { mark: "theirs", ..OURS });
    system.locked.insert(8, changes_hands);
    let _ = undo(&Undo::KillMarked("ours".into()), &system);
    assert_eq!(system.said(), ["kill 7 at 0 s"], "at once, before 8 is looked at");
    // A change between reading a process and sending the signal.
    let system = Recorded::default().process(7, &OURS);
    let held = system.hold(7).unwrap();
    changes_hands(&mut system.processes.borrow_mut());
    assert_eq!(held.kill().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(system.said().is_empty());
}

#[test]
fn who_does_not_show_his_environment_is_passed_over_and_said() {
    let mut system = Recorded::default().process(7, &OURS).process(8, &OURS).process(9, &OURS);
    system.locked.insert(8, |_| {});
    let how = Undo::KillMarked("ours".into());
    let error = undo(&how, &system).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the environment of process 8 could not be read in time: it is unknown whether it belongs to the run"
    );
    assert_eq!((system.said(), system.now()), (vec!["kill 7 at 0 s".into(), "kill 9 at 0 s".into()], POLL));
    assert!(is_over(&how, &error), "nobody waits for it again");
}

#[test]
fn the_mark_is_found_in_a_long_environment_and_thousands_of_them_are_not_read_whole() {
    let other = Process { mark: "other", ..OURS };
    let with = |others: u32| {
        let system = Recorded { before_marks: 100_000, ..Recorded::default() }.process(1, &OURS);
        (2..others + 2).fold(system, |system, pid| system.process(pid, &other))
    };
    let few = with(3);
    assert_eq!(marked("ours", &few).unwrap(), [1]);
    let many = with(3_000);
    marked("ours", &many).unwrap();
    let each = many.taken.get() / 3_000;
    assert!(each < 2 * 64 * 1024 + 8 * 1024 * 1024 / 4, "{each} bytes of each of them");
}

#[test]
fn who_undoes_something_himself_is_given_time_and_is_killed_when_he_takes_more() {
    let worker = Process { argument: WORKER, ..OURS };
    let quick = Process { ends: Some(SPARED / 2), ..worker.clone() };
    let system = Recorded::default().process(7, &OURS).process(8, &quick).process(9, &worker);
    undo(&Undo::KillMarked("ours".into()), &system).unwrap();
    assert_eq!(system.said(), ["kill 7 at 0 s", "kill 9 at 3 s"]);
}

#[test]
fn settings_are_written_back_before_any_process_is_looked_at_and_once_more_after_it() {
    let write = |path: &str, value: &str| Undo::Write { path: path.into(), value: value.into() };
    let inside =
        Undo::Where { there: "/there".into(), then: vec![write("/c", "3"), Undo::Remove("/d".into())] };
    let gone = Undo::Where { there: "/gone".into(), then: vec![write("/e", "5")] };
    let written =
        [write("/a", "1"), Undo::Remove("/b".into()), Undo::KillMarked("ours".into()), inside, gone];
    let open = in_order((0..).zip(written).collect());
    let system =
        Recorded::default().process(7, &OURS).text("/there", "").trouble("/a", ErrorKind::ResourceBusy, 1);
    settings_first(&open, &system);
    assert_eq!(system.said(), ["write 3 /c", "write 1 /a"]);
    for (_, how) in open {
        undo(&how, &system).unwrap();
    }
    assert_eq!(system.said(), ["kill 7 at 0 s", "write 3 /c", "remove /d", "remove /b", "write 1 /a"]);
}

#[test]
fn processes_that_do_not_die_are_named() {
    let stuck = Process { dies: false, ..OURS };
    let system = Recorded::default().process(7, &stuck);
    let error = undo(&Undo::KillMarked("ours".into()), &system).unwrap_err();
    assert_eq!(error.to_string(), "processes [7] do not die");
    assert!(system.now() >= DYING && system.now() < DYING * 2);
}

fn any_undo() -> impl Strategy<Value = Undo> {
    let path = "/[a-c]";
    prop_oneof![
        path.prop_map(|path| Undo::Remove(path.into())),
        path.prop_map(|path| Undo::RemoveEmpty(path.into())),
        path.prop_map(|path| Undo::Unmount(path.into())),
        (path, "[0-9]").prop_map(|(path, value)| Undo::Write { path: path.into(), value }),
        "tactus-[a-c]".prop_map(|name| Undo::Tool(Tool::PodmanContainer { name, hidden: Vec::new() })),
        "[a-c]".prop_map(Undo::KillMarked),
    ]
}

proptest! {
    #[test]
    fn nothing_is_tried_for_ever_and_what_failed_may_be_undone_later(
        how in any_undo(), times in 0..3 * TRIES,
    ) {
        let system = ["/a", "/b", "/c"]
            .into_iter()
            .fold(Recorded::default(), |system, path| system.trouble(path, ErrorKind::ResourceBusy, times));
        let is_path = !matches!(how, Undo::Tool(_) | Undo::KillMarked(_));
        let result = undo(&how, &system);
        prop_assert_eq!(result.is_ok(), !is_path || times < TRIES);
        prop_assert!(system.said().len() <= TRIES as usize && system.now() < PAUSE * TRIES);
        // A later undo may run again, any number of times.
        while undo(&how, &system).is_err() {}
        prop_assert!(undo(&how, &system).is_ok());
    }

    #[test]
    fn everything_is_undone_once_processes_first_and_the_newest_first(
        written in proptest::collection::vec(any_undo(), 0..12),
    ) {
        let written: Vec<(u64, Undo)> = (0..).zip(written).collect();
        let order = in_order(written.clone());
        let is_mark = |(_, how): &(u64, Undo)| matches!(how, Undo::KillMarked(_));
        let marks = order.iter().take_while(|entry| is_mark(entry)).count();
        prop_assert!(!order[marks..].iter().any(is_mark));
        let falls = |entries: &[(u64, Undo)]| entries.windows(2).all(|pair| pair[0].0 > pair[1].0);
        prop_assert!(falls(&order[..marks]) && falls(&order[marks..]));
        let mut again = order;
        again.sort_by_key(|(id, _)| *id);
        prop_assert_eq!(again, written);
    }
}
