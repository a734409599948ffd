//! Tests that all [`Actions`] must pass on a real system. Each crate with an implementation includes these tests beside
//! a function `here()` that makes it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tactus_model::CpuSet;
use tactus_model::change::Thread;
use tactus_model::undo::{Actions, MARKER, Tool, Undo, marked, undo};

use super::here;

/// A directory of a test, which goes with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("tactus-undo-{}-{name}-{}", env!("CARGO_PKG_NAME"), std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, name).unwrap();
        path
    }

    fn dir(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sleeper(mark: &str) -> Child {
    // Its child also carries the mark.
    Command::new("sh").args(["-c", "sleep 601 & exec sleep 600"]).env(MARKER, mark).spawn().unwrap()
}

fn through_the_root(path: &Path) -> PathBuf {
    Path::new("/proc/self/root").join(path.strip_prefix("/").unwrap())
}

#[test]
fn undoing_what_is_not_there_is_no_failure() {
    for how in [
        Undo::Remove("/no/such/file".into()),
        Undo::Remove("/proc/999999999/root/run/x".into()),
        Undo::RemoveEmpty("/no/such/directory".into()),
        Undo::Unmount("/no/such/mount".into()),
        Undo::Unmount("/etc/passwd".into()),
        Undo::Write { path: "/no/such/value".into(), value: "1".into() },
        Undo::KillMarked("nobody-carries-this".into()),
        Undo::Tool(Tool::Jailhouse { program: "/no/such/program/jailhouse".into() }),
        // A thread that has ended, and one that is another one.
        Undo::Tool(Tool::Scheduling {
            thread: Thread { tid: 999_999_999, name: "x".into(), started: None },
            was: "OTHER 0".into(),
        }),
        Undo::Tool(Tool::Affinity {
            thread: Thread { tid: 1, name: "no init".into(), started: None },
            cpus: CpuSet::one(0),
        }),
    ] {
        undo(&how, &here()).unwrap_or_else(|error| panic!("{how}: {error}"));
    }
}

#[test]
fn files_directories_and_links_are_removed_and_not_what_a_link_points_to() {
    let place = Place::new("remove");
    let (kept, full, file, link) =
        (place.dir("kept"), place.dir("full/x/y"), place.file("f"), place.0.join("l"));
    std::os::unix::fs::symlink(&kept, &link).unwrap();
    for path in [place.0.join("full"), file.clone(), link.clone()] {
        undo(&Undo::Remove(path), &here()).unwrap();
    }
    assert!(kept.exists() && !full.exists() && !file.exists() && fs::symlink_metadata(link).is_err());
}

#[test]
fn of_another_root_one_file_is_removed_and_never_a_directory() {
    let place = Place::new("root");
    let (file, dir) = (place.file("f"), place.dir("d"));
    undo(&Undo::Remove(through_the_root(&file)), &here()).unwrap();
    assert!(!file.exists());
    undo(&Undo::Remove(through_the_root(&file)), &here()).unwrap();
    assert!(undo(&Undo::Remove(through_the_root(&dir)), &here()).is_err());
    assert!(dir.exists());
}

#[test]
fn a_directory_is_removed_as_an_empty_one_only_when_it_is() {
    let place = Place::new("empty");
    let dir = place.dir("d");
    let theirs = place.file("d/theirs");
    assert!(undo(&Undo::RemoveEmpty(dir.clone()), &here()).is_err());
    assert!(theirs.exists());
    // An entry that is about to disappear is waited for.
    let going = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(120));
        fs::remove_file(theirs).unwrap();
    });
    undo(&Undo::RemoveEmpty(dir.clone()), &here()).unwrap();
    assert!(!dir.exists());
    going.join().unwrap();
}

#[test]
fn a_former_value_is_written_back_whole_and_no_file_is_made() {
    let place = Place::new("write");
    let file = place.file("a longer value");
    let write = |path: &Path| undo(&Undo::Write { path: path.into(), value: "7".into() }, &here());
    write(&file).unwrap();
    assert_eq!(fs::read_to_string(file).unwrap(), "7");
    write(&place.0.join("gone")).unwrap();
    assert!(!place.0.join("gone").exists());
}

#[test]
fn a_command_runs_and_not_for_ever() {
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let stat = PathBuf::from(format!("/proc/{}/stat", child.id()));
    // The policy is the 41st field, the third the first after the name (proc_pid_stat(5)); 5 is SCHED_IDLE.
    let is_idle =
        || fs::read_to_string(&stat).unwrap().rsplit(')').next().unwrap().split(' ').nth(39) == Some("5");
    while fs::read_to_string(stat.with_file_name("comm")).unwrap() != "sleep\n" {}
    let thread = Thread { tid: child.id(), name: "sleep".into(), started: None };
    assert!(!is_idle());
    undo(&Undo::Tool(Tool::Scheduling { thread, was: "IDLE 0".into() }), &here()).unwrap();
    assert!(is_idle());
    child.kill().unwrap();
    child.wait().unwrap();
    let sleep = ["sleep".to_owned(), "600".to_owned()];
    let error = here().run(&sleep, Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn every_marked_process_is_killed_and_no_other() {
    let mark = format!("undo-{}-{}", env!("CARGO_PKG_NAME"), std::process::id());
    let (mut ours, mut other) = (sleeper(&mark), sleeper(&format!("{mark}-other")));
    while marked(&mark, &here()).unwrap().len() < 2 {
        assert!(ours.try_wait().unwrap().is_none());
    }
    undo(&Undo::KillMarked(mark.clone()), &here()).unwrap();
    assert!(marked(&mark, &here()).unwrap().is_empty() && !ours.wait().unwrap().success());
    assert!(other.try_wait().unwrap().is_none(), "another run's process lives");
    undo(&Undo::KillMarked(format!("{mark}-other")), &here()).unwrap();
    other.wait().unwrap();
}

/// Makes the next process have this number, if no other process starts meanwhile; returns the process on success.
fn with_number(pid: u32) -> Option<Child> {
    fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).ok()?;
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    if child.id() == pid {
        return Some(child);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[test]
fn a_process_that_is_held_is_meant_and_no_later_one_of_its_number() {
    for _ in 0..50 {
        let mut first = Command::new("sleep").arg("600").spawn().unwrap();
        let system = here();
        let (pid, held) = (first.id(), system.hold(first.id()).unwrap());
        held.kill().unwrap();
        first.wait().unwrap();
        held.kill().unwrap_err();
        let Some(mut second) = with_number(pid) else { continue };
        held.kill().unwrap_err();
        assert!(second.try_wait().unwrap().is_none(), "another process of the same number lives");
        second.kill().unwrap();
        second.wait().unwrap();
        return;
    }
    assert!(std::env::var_os("TACTUS_TEST_ALL").is_none(), "skipped, and TACTUS_TEST_ALL is set: numbers");
    eprintln!("SKIPPED: no process could be given the number of another one");
}

/// Shows 1 TiB as its environment, which is a few pages of its memory: prctl(2), PR_SET_MM_MAP. Any user may do that.
const ENDLESS: &str = r#"
import ctypes, struct, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = libc.sbrk.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
length = 1 << 40
start = libc.mmap(None, length, 1, 0x4022, -1, 0)
fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
code, data, brk, stack, arguments = [[int(fields[n - 3]) for n in of] for of in ([26, 27], [45, 46], [47], [28], [48, 49])]
own = struct.pack("=11QQII", *code, *data, *brk, libc.sbrk(0), *stack, *arguments, start, start + length, 0, 0, 0xffffffff)
shown = libc.prctl(35, 14, ctypes.create_string_buffer(own), ctypes.c_ulong(len(own)), 0) == 0
print("shown" if shown else "refused", flush=True)
sys.stdin.read()
"#;

#[test]
fn an_environment_without_an_end_is_read_up_to_a_length() {
    use std::io::BufRead;
    let python =
        Command::new("python3").args(["-c", ENDLESS]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let said = python.map(|mut python| {
        let mut said = String::new();
        std::io::BufReader::new(python.stdout.take().unwrap()).read_line(&mut said).unwrap();
        (python, said)
    });
    let mut python = match said {
        Ok((python, said)) if said == "shown\n" => python,
        other => {
            assert!(
                std::env::var_os("TACTUS_TEST_ALL").is_none(),
                "skipped, and TACTUS_TEST_ALL is set: {other:?}"
            );
            eprintln!("SKIPPED: no process shows an endless environment here: {other:?}");
            return;
        }
    };
    let shown = here().read(Path::new(&format!("/proc/{}/environ", python.id())));
    let none = marked("nobody-carries-this", &here());
    python.kill().unwrap();
    python.wait().unwrap();
    assert_eq!(shown.unwrap().len() as u64, tactus_model::process_files::ENVIRONMENT);
    assert!(none.unwrap().is_empty());
}

#[test]
fn what_is_mounted_inside_goes_and_keeps_its_files() {
    let place = Place::new("mount");
    let (theirs, inside) = (place.dir("theirs"), place.dir("ours/a b"));
    let file = place.file("theirs/file");
    let mount = |dir: &Path| Command::new("mount").arg("--bind").arg(&theirs).arg(dir).output().unwrap();
    let outcome = mount(&inside);
    if !outcome.status.success() {
        assert!(std::env::var_os("TACTUS_TEST_ALL").is_none(), "skipped, and TACTUS_TEST_ALL is set: mount");
        eprintln!("SKIPPED: {}", String::from_utf8_lossy(&outcome.stderr));
        return;
    }
    undo(&Undo::Remove(place.0.join("ours")), &here()).unwrap();
    assert!(file.exists() && !place.0.join("ours").exists());
    let alone = place.dir("alone");
    assert!(mount(&alone).status.success() && alone.join("file").exists());
    undo(&Undo::Unmount(alone.clone()), &here()).unwrap();
    undo(&Undo::Unmount(alone.clone()), &here()).unwrap();
    assert!(file.exists() && !alone.join("file").exists());
}
