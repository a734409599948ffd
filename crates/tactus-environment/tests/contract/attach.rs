//! Attaching to containers that run: real ones of each kind, with nothing in them but one program and,
//! where the kind can have it, a root that cannot be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tactus_environment::{ENVIRONMENTS, Environment, Usable, find};
use tactus_model::message::{End, FromProbe};
use tactus_model::plan;
use tactus_system::Real;
use tactus_system::probe;
use tactus_system::topology;

use super::docker::Daemon;
use super::{Conversation, PATIENCE, alone, beside_others, leftovers, skipped};

/// A container that runs until this is dropped: the probe, which waits for words that never come.
struct Container {
    spec: plan::Environment,
    /// Its first process.
    pid: u32,
    cpu: u32,
    process: Child,
    remove: Option<Vec<String>>,
    /// Directories to be removed, innermost first.
    groups: Vec<PathBuf>,
    daemon: Option<Daemon>,
    _dir: tempfile::TempDir,
}

impl Container {
    /// Starts one of this kind; `None`, and says so, where it cannot be used.
    fn start(kind: &str) -> Option<Self> {
        let daemon = if kind == "docker" { Daemon::start() } else { None };
        let host = daemon.as_ref().map(Daemon::host);
        let mut options = Vec::new();
        options.extend(host.as_deref().map(|host| ("host", host)));
        let mut spec = super::spec(kind, &options);
        if let Usable::No { reason, remedy } = find(kind).unwrap().usable_as(&spec, &Real) {
            skipped(&format!("attach to {kind}: {reason}; {remedy}"));
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("usr")).unwrap();
        fs::write(root.join("init"), probe::own().unwrap()).unwrap();
        let mode = Command::new("chmod").args(["755"]).arg(root.join("init")).status().unwrap();
        assert!(mode.success());
        let name = format!("running-{}", std::process::id());
        let cpu = topology(&Real).allowed.iter().last().unwrap();
        let mut groups = Vec::new();
        let (words, remove) = match kind {
            "podman" => (
                podman(&name, cpu, &root),
                Some(vec!["podman".into(), "rm".into(), "-f".into(), name.clone()]),
            ),
            "docker" => docker(daemon.as_ref().unwrap(), &name, cpu, &root),
            "lxc" => {
                spec.options.insert("path".into(), dir.path().display().to_string().into());
                (lxc(&name, cpu, &root, dir.path()), None)
            }
            _ => (nspawn(&name, cpu, &root, &mut groups), None),
        };
        let process = Command::new(&words[0])
            .args(&words[1..])
            .env("SYSTEMD_NSPAWN_LOCK", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        spec.attach = Some(name);
        let mut container = Self { spec, pid: 0, cpu, process, remove, groups, daemon, _dir: dir };
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let attached = find(kind).unwrap().attached(&container.spec, &Real, &topology(&Real));
            // Until it is confined to its CPU and executes its program it is not up.
            match (attached, started(container.process.id())) {
                (Ok(layout), Some(pid)) if layout.inside().len() == 1 => {
                    container.pid = pid;
                    return Some(container);
                }
                (attached, _) => assert!(Instant::now() < until, "{kind} does not come up: {attached:?}"),
            }
            assert!(container.process.try_wait().unwrap().is_none(), "{kind} ended");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether its program runs.
    fn runs(&self) -> bool {
        Path::new(&format!("/proc/{}/exe", self.pid)).exists()
            && fs::read(format!("/proc/{}/cmdline", self.pid)).is_ok_and(|line| line.starts_with(b"/init"))
    }

    /// Files of ours in it.
    fn holds(&self) -> Vec<PathBuf> {
        let places =
            ["", "dev", "run", "tmp"].map(|place| PathBuf::from(format!("/proc/{}/root/{place}", self.pid)));
        let entries = places.iter().flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten());
        entries.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains("tactus")).collect()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // The end of its stdin is the end of its program.
        drop(self.process.stdin.take());
        let until = Instant::now() + Duration::from_secs(10);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Some(words) = &self.remove {
            let _ = Command::new(&words[0]).args(&words[1..]).output();
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        for group in &self.groups {
            let _ = fs::remove_dir(group);
        }
        if let Some(daemon) = &self.daemon {
            let _ = fs::remove_dir(daemon.group("cpu").join("with-budget"));
        }
    }
}

/// The process that executes `/init` and began after `since`, which is older.
fn started(since: u32) -> Option<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut inits = pids.filter(|pid| {
        *pid > since
            && fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"/init\0")
            && fs::read(format!("/proc/{pid}/status")).is_ok_and(|status| {
                String::from_utf8_lossy(&status)
                    .lines()
                    .any(|l| l.starts_with("NSpid:\t") && l.split('\t').count() > 2)
            })
    });
    inits.next()
}

/// A command without the hierarchies in which a container would have no real-time budget.
fn wrapped(words: &[&str]) -> Vec<String> {
    if !Path::new("/sys/fs/cgroup/cpu/cpu.rt_runtime_us").exists() {
        return words.iter().map(|word| (*word).to_owned()).collect();
    }
    let script = "umount /sys/fs/cgroup/cpu; umount /sys/fs/cgroup/unified 2>/dev/null; exec \"$@\"";
    ["unshare", "-m", "sh", "-c", script, "sh"].iter().chain(words).map(|word| (*word).to_owned()).collect()
}

fn podman(name: &str, cpu: u32, root: &Path) -> Vec<String> {
    let (cpus, root) = (format!("--cpuset-cpus={cpu}"), root.display().to_string());
    let limits = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"];
    let mut words = vec!["podman", "run", "--rm", "-i", "--runtime=crun", "--name", name, "--network=none"];
    words.extend(["--log-driver=none", "--read-only", "--cap-add=SYS_NICE", "--cap-add=IPC_LOCK", &cpus]);
    words.extend(limits);
    words.extend(["--rootfs", &root, "/init"]);
    wrapped(&words)
}

fn docker(daemon: &Daemon, name: &str, cpu: u32, root: &Path) -> (Vec<String>, Option<Vec<String>>) {
    let tar = root.with_extension("tar");
    let packed = Command::new("tar").arg("-cf").arg(&tar).arg("-C").arg(root).arg("init").status().unwrap();
    assert!(packed.success());
    let imported = daemon.client(&["import", tar.to_str().unwrap(), "only-init:1"]);
    assert!(imported.status.success(), "{imported:?}");
    let mut words = vec!["docker".to_owned(), "-H".into(), daemon.host()];
    let remove = words.iter().cloned().chain(["rm", "-f", name].map(str::to_owned)).collect();
    words.extend(
        ["run", "--rm", "-i", "--read-only", "--network=none", "--log-driver=none"].map(str::to_owned),
    );
    words.extend(["--cap-add=SYS_NICE".to_owned(), "--cap-add=IPC_LOCK".into()]);
    words.extend([format!("--name={name}"), format!("--cpuset-cpus={cpu}")]);
    if Path::new("/sys/fs/cgroup/cpu/cpu.rt_runtime_us").exists() {
        // As a user must who wants SCHED_FIFO in a container there.
        let group = daemon.group("cpu");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("cpu.rt_runtime_us"), "300000").unwrap();
        words.push("--cpu-rt-runtime=300000".into());
    }
    words.extend(["only-init:1".to_owned(), "/init".into()]);
    (words, Some(remove))
}

fn lxc(name: &str, cpu: u32, root: &Path, dir: &Path) -> Vec<String> {
    let version = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() { "cgroup2" } else { "cgroup" };
    let config = format!(
        "lxc.rootfs.path = dir:{}\nlxc.net.0.type = empty\nlxc.mount.auto = proc:mixed sys:ro\n\
lxc.apparmor.profile = unconfined\nlxc.pty.max = 1\nlxc.cap.keep = sys_nice ipc_lock\nlxc.{version}.cpuset.cpus = {cpu}\n",
        root.display()
    );
    let (file, dir) = (dir.join("config"), dir.display().to_string());
    fs::write(&file, config).unwrap();
    wrapped(&["lxc-execute", "-P", &dir, "-n", name, "-f", file.to_str().unwrap(), "--", "/init"])
}

fn nspawn(name: &str, cpu: u32, root: &Path, groups: &mut Vec<PathBuf>) -> Vec<String> {
    let root = root.display().to_string();
    let nspawn = [
        "systemd-nspawn",
        "-q",
        "--console=pipe",
        "--register=no",
        "--private-network",
        "-M",
        name,
        "-D",
        &root,
    ];
    let mut words = nspawn.map(str::to_owned).to_vec();
    words.push("--capability=CAP_IPC_LOCK".into());
    if Path::new("/run/systemd/system").exists() {
        words.push(format!("--property=AllowedCPUs={cpu}"));
    } else {
        words.push("--keep-unit".into());
        let mut enter = String::new();
        for hierarchy in ["cpuset", "systemd", "unified"] {
            let group = Path::new("/sys/fs/cgroup").join(hierarchy).join(name);
            fs::create_dir_all(&group).unwrap();
            enter += &format!("echo $$ >{}/cgroup.procs && ", group.display());
            groups.extend(["payload", "supervisor"].map(|part| group.join(part)));
            groups.push(group);
        }
        let cpuset = Path::new("/sys/fs/cgroup/cpuset");
        fs::copy(cpuset.join("cpuset.mems"), cpuset.join(name).join("cpuset.mems")).ok();
        fs::write(cpuset.join(name).join("cpuset.cpus"), cpu.to_string()).unwrap();
        words.splice(0..0, ["sh".to_owned(), "-c".into(), enter + "exec \"$@\"", "sh".into()]);
    }
    words.push("/init".into());
    words
}

fn kinds() -> impl Iterator<Item = (&'static (dyn Environment + Sync), Container)> {
    ["podman", "docker", "lxc", "nspawn"].into_iter().filter_map(|kind| {
        let environment = ENVIRONMENTS.iter().find(|environment| environment.kind() == kind)?;
        assert!(environment.can_attach(), "{kind}");
        Some((*environment, Container::start(kind)?))
    })
}

#[test]
fn a_probe_that_attaches_measures_in_the_container_and_leaves_it_as_it_was() {
    let _turn = alone();
    for (environment, container) in kinds() {
        let kind = environment.kind();
        let mut talk = Conversation::begin(environment, &container.spec)
            .unwrap_or_else(|error| panic!("{kind}: {error}"));
        let facts = talk.greet();
        let status = facts.text("/proc/self/status").unwrap_or_default();
        assert!(status.contains(&format!("Cpus_allowed_list:\t{}\n", container.cpu)), "{kind}: {status}");
        let init = fs::read_to_string(format!("/proc/{}/status", container.pid)).unwrap();
        let bounding = |text: &str| text.lines().find(|l| l.starts_with("CapBnd")).map(str::to_owned);
        assert_eq!(bounding(status), bounding(&init), "{kind}: other capabilities than the container's");
        if kind == "nspawn" {
            is_memory_with_the_rights_of_the_container(talk.id());
        }
        let notes = talk.running.after_hello().unwrap();
        for note in &notes {
            eprintln!("attached to {kind}: {:?}: {}", note.kind, note.text);
            let strange = ["own cgroup", "not found", "could not be removed", "budget of 0"];
            assert!(!strange.iter().any(|word| note.text.contains(word)), "{kind}: {}", note.text);
        }
        assert_eq!(container.holds(), [] as [PathBuf; 0], "{kind}: what runs needs no name");
        talk.measure_for(Duration::from_millis(300));
        let mut cycles = 0;
        loop {
            match talk.hear(PATIENCE) {
                FromProbe::Tick(tick) => cycles += tick.now.cycles,
                FromProbe::Done(done) => {
                    break assert_eq!(done.end, End::Complete, "{kind}: {:?}", done.reason);
                }
                _ => {}
            }
        }
        assert!(cycles >= 10, "{kind}: {cycles} cycles");
        let id = talk.id().to_owned();
        talk.end();
        leftovers::none_within(&id, Duration::from_secs(5))
            .unwrap_or_else(|left| panic!("{kind} leaves {left}"));
        assert!(container.runs(), "{kind}: the container goes on");
    }
}

/// The probe in a container whose root may exchange every file and look into every process. The probe is not a file
/// of the container, cannot regain a right, and has nothing of root's environment.
fn is_memory_with_the_rights_of_the_container(id: &str) {
    let mark = format!("TACTUS_RUN={id}");
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let probes: Vec<PathBuf> = processes
        .filter(|path| {
            fs::read(path.join("cmdline")).is_ok_and(|line| line.starts_with(b"/.") && line.ends_with(b"\0"))
                && fs::read(path.join("environ"))
                    .is_ok_and(|words| words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()))
        })
        .collect();
    let [probe] = &probes[..] else { panic!("not one probe in the container: {probes:?}") };
    assert!(fs::read_link(probe.join("exe")).unwrap().starts_with("/memfd:tactus-probe (deleted)"));
    assert!(fs::read_to_string(probe.join("status")).unwrap().contains("NoNewPrivs:\t1\n"));
    let words = fs::read_to_string(probe.join("environ")).unwrap();
    let names: Vec<&str> =
        words.split_terminator('\0').filter_map(|word| Some(word.split_once('=')?.0)).collect();
    assert_eq!(names, ["TACTUS_RUN", "PATH"]);
    let open = fs::read_dir(probe.join("fd")).unwrap().flatten();
    let leads = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let leads: Vec<String> = leads.map(|to| to.display().to_string()).collect();
    let files = leads.iter().filter(|to| to.starts_with('/') && !to.starts_with("/dev/")).collect::<Vec<_>>();
    assert!(files.is_empty(), "files of the machine: {files:?}");
}

#[test]
fn a_run_that_is_killed_before_the_first_word_leaves_no_file_in_the_container() {
    let _turn = alone();
    for (environment, container) in kinds() {
        let kind = environment.kind();
        let talk = Conversation::begin(environment, &container.spec)
            .unwrap_or_else(|error| panic!("{kind}: {error}"));
        // Not settled: the file is there, where there is one.
        assert_eq!(container.holds().len(), usize::from(kind != "nspawn"), "{kind}");
        let id = talk.id().to_owned();
        drop(talk);
        leftovers::none_within(&id, Duration::from_secs(25))
            .unwrap_or_else(|left| panic!("{kind} leaves {left}"));
        assert_eq!(container.holds(), [] as [PathBuf; 0], "{kind}");
        assert!(container.runs(), "{kind}: the container goes on");
    }
}

#[test]
fn what_does_not_run_cannot_be_attached_to_and_the_reason_has_its_name() {
    let _turn = beside_others();
    for kind in ["podman", "lxc", "nspawn"] {
        let environment = find(kind).unwrap();
        let spec = plan::Environment { attach: Some("no-such-thing".into()), ..super::spec(kind, &[]) };
        if let Usable::No { reason, remedy } = environment.usable_as(&spec, &Real) {
            skipped(&format!("{kind}: {reason}; {remedy}"));
            continue;
        }
        let error = environment.attached(&spec, &Real, &topology(&Real)).unwrap_err();
        assert!(error.reason.contains("no-such-thing") && error.hint.is_some(), "{kind}: {error}");
    }
}
