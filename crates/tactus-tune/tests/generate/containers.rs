//! The generated scripts for Podman and Docker, run on this machine: the container has its CPUs, and its
//! threads may be FIFO.

#[path = "../../../tactus-environment/tests/contract/docker/daemon.rs"]
#[expect(dead_code, reason = "what environments leave in it is not looked for here")]
mod daemon;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tactus_system::Real;
use tactus_system::topology;
use tactus_tune::generate::GuestOptions;
use tempfile::TempDir;

use crate::common::{generated, has, run, skipped, words};
use daemon::Daemon;

/// Gone again when the test ends.
struct Budget;

impl Drop for Budget {
    fn drop(&mut self) {
        // The engine's own process may still be in it for a moment.
        let gone = "for n in $(seq 50); do \
                    find /sys/fs/cgroup/*/tactus-rt -depth -type d -exec rmdir {} + 2>/dev/null; \
                    ls -d /sys/fs/cgroup/*/tactus-rt >/dev/null 2>&1 || break; sleep 0.1; done";
        let _ = Command::new("sh").args(["-c", gone]).status();
    }
}

/// A container that is to be run by the script that was generated for this machine.
struct Container {
    dir: TempDir,
    /// The isolated CPU.
    cpu: u32,
    /// Words for an engine without network and logs.
    options: Vec<&'static str>,
    _budget: Budget,
    /// One at a time: they share the machine's budget for real-time threads.
    _turn: MutexGuard<'static, ()>,
}

impl Container {
    /// Generates the script; `None`, and it is said why, where no container can be run.
    fn new(engine: &str) -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        if !has(engine) || !has("busybox") {
            return None;
        }
        if !rustix::process::getuid().is_root() {
            skipped("only root gives a container these capabilities");
            return None;
        }
        let topology = topology(&Real);
        let Some(cpu) = topology.online.last().filter(|cpu| *cpu > 0) else {
            skipped("there is one CPU only");
            return None;
        };
        let mut facts = tactus_system::facts(&Real, &topology, std::process::id()).unwrap();
        // A hardware thread beside it serves as housekeeping CPU: good enough to see the flags work.
        for online in topology.online.iter() {
            let siblings = format!("/sys/devices/system/cpu/cpu{online}/topology/thread_siblings_list");
            facts.keep(siblings, online.to_string());
        }
        let named = GuestOptions { name: "tactus-test".into(), ..GuestOptions::default() };
        let dir = generated(engine, &facts, &cpu.to_string(), &named);
        let mut options = vec!["--network=none", "--log-driver=none"];
        let v1 =
            facts.text("/proc/self/cgroup").unwrap_or_default().lines().any(|line| line.contains(":cpu"));
        if v1 && engine == "podman" {
            // crun refuses cgroup v1 with v2 beside it.
            if !has("runc") {
                return None;
            }
            options.push("--runtime=runc");
        }
        Some(Self { dir, cpu, options, _budget: Budget, _turn: turn })
    }

    /// Takes lines out of the script that this root may not carry out: one that may raise no limit.
    fn without_limits(&mut self, engine: &str) {
        const CAP_SYS_RESOURCE: u64 = 1 << 24;
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        let caps = own.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
        if u64::from_str_radix(caps, 16).unwrap() & CAP_SYS_RESOURCE != 0 {
            return;
        }
        let script = self.script(engine);
        let text = std::fs::read_to_string(&script).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with("set -- --ulimit"));
        std::fs::write(&script, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        if engine == "podman" {
            // It raises two by itself.
            self.options.extend(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]);
        }
    }

    fn script(&self, engine: &str) -> PathBuf {
        self.dir.path().join(format!("tactus-test-{engine}.sh"))
    }

    /// Runs it: it must have its CPU alone, and FIFO threads.
    fn holds(&self, engine: &str, host: Option<&str>, image: &[&str]) {
        let mut command = Command::new(self.script(engine));
        command.args(&self.options).args(image).args(["/busybox", "sh", "-c"]);
        command.arg(
            "/busybox grep Cpus_allowed_list /proc/self/status; /chrt -f 10 /busybox echo fifo is allowed",
        );
        command.envs(host.map(|host| ("DOCKER_HOST", host)));
        let output = run(&mut command);
        let said = words(&output);
        assert!(output.status.success(), "{said}");
        assert!(said.contains(&format!("Cpus_allowed_list:\t{}\n", self.cpu)), "{said}");
        assert!(said.contains("fifo is allowed"), "{said}");
    }
}

#[test]
fn podman_runs_with_the_flags_and_fifo_is_allowed_inside() {
    let Some(mut container) = Container::new("podman") else { return };
    container.without_limits("podman");
    let root = rootfs(container.dir.path());
    container.holds("podman", None, &["--no-hosts", "--rootfs", root.to_str().unwrap()]);
}

#[test]
fn docker_runs_with_the_flags_and_fifo_is_allowed_inside() {
    let Some(mut container) = Container::new("docker") else { return };
    container.without_limits("docker");
    let Some(daemon) = Daemon::start() else { return skipped("there is no dockerd") };
    let root = rootfs(container.dir.path());
    let archive = container.dir.path().join("image.tar");
    let packed = run(Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(root).arg("."));
    assert!(packed.status.success(), "{}", words(&packed));
    let imported = daemon.client(&["import", archive.to_str().unwrap(), "tactus-test:1"]);
    assert!(imported.status.success(), "{}", words(&imported));
    container.holds("docker", Some(&daemon.host()), &["tactus-test:1"]);
}

/// A root file system with busybox and chrt, and the libraries of the latter where ldd finds them.
fn rootfs(dir: &Path) -> PathBuf {
    let root = dir.join("root");
    std::fs::create_dir_all(root.join("proc")).unwrap();
    let busybox = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("busybox"))
        .find(|p| p.is_file());
    std::fs::copy(busybox.unwrap(), root.join("busybox")).unwrap();
    let chrt = Path::new("/usr/bin/chrt");
    std::fs::copy(chrt, root.join("chrt")).unwrap();
    let needs = words(&run(Command::new("ldd").arg(chrt)));
    for library in needs.split_whitespace().filter(|word| word.starts_with('/')) {
        let inside = root.join(library.trim_start_matches('/'));
        std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
        std::fs::copy(library, inside).unwrap();
    }
    root
}
