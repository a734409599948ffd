//! A container of a user's own, which tactus attaches to.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tactus_system::{Real, topology};

use crate::common::{output, stderr, stdout};
use crate::on_docker::daemon::Daemon;

/// The capabilities for a real-time thread.
const CAPABILITIES: [&str; 2] = ["--cap-add=SYS_NICE", "--cap-add=IPC_LOCK"];
/// The file exists only if the kernel gives each group a separate real-time budget, which is 0 in a new group.
const BUDGETS: &str = "/sys/fs/cgroup/cpu/cpu.rt_runtime_us";

/// One that runs.
pub struct Container {
    process: Child,
    /// Asks for its state.
    asks: Vec<String>,
    /// The answer for a running one.
    answer: &'static str,
    removes: Vec<String>,
}

impl Container {
    /// Starts a program of a root directory in one of Podman, and waits until it runs.
    pub fn running(name: &str, root: &Path, program: &[&str]) -> Self {
        let mut words =
            vec!["podman", "run", "--rm", "--runtime=crun", "--network=none", "--log-driver=none"];
        words.extend(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]);
        words.extend(CAPABILITIES);
        let root = root.display().to_string();
        words.extend(["--name", name, "--rootfs", &root]);
        words.extend(program);
        Self::started(
            &with_a_budget(&words),
            (&["podman", "inspect", "--format", "{{.State.Running}}", name], "true"),
            &["podman", "rm", "-f", "-t", "0", name],
        )
    }

    /// The same of Docker, by a daemon of the test's own.
    pub fn of_docker(daemon: &Daemon, name: &str, root: &Path, program: &[&str]) -> Self {
        let (tar, image, host) = (root.with_extension("tar"), format!("{name}:1"), daemon.host());
        let packed = output(Command::new("tar").arg("-cf").arg(&tar).arg("-C").arg(root).arg("."));
        assert!(packed.status.success(), "{}", stderr(&packed));
        let imported = daemon.client(&["import", tar.to_str().unwrap(), &image]);
        assert!(imported.status.success(), "{}", stderr(&imported));
        let cpus = format!("--cpuset-cpus={}", topology(&Real).allowed);
        let mut words = vec!["docker", "-H", &host, "run", "--network=none", "--log-driver=none", &cpus];
        words.extend(CAPABILITIES);
        if Path::new(BUDGETS).exists() {
            // As a user must who wants SCHED_FIFO in a container there.
            let group = daemon.group("cpu");
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cpu.rt_runtime_us"), "300000").unwrap();
            words.push("--cpu-rt-runtime=300000");
        }
        words.extend(["--name", name, &image]);
        words.extend(program);
        Self::started(
            &owned(&words),
            (&["docker", "-H", &host, "inspect", "--format", "{{.State.Running}}", name], "true"),
            &["docker", "-H", &host, "rm", "-f", name],
        )
    }

    /// The same of LXC, which keeps what it must in the directory that the root lies in.
    pub fn of_lxc(name: &str, root: &Path, program: &[&str]) -> Self {
        let home = root.parent().unwrap();
        let version =
            if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() { "cgroup2" } else { "cgroup" };
        let config = format!(
            "lxc.rootfs.path = dir:{}\nlxc.net.0.type = empty\nlxc.mount.auto = proc:mixed sys:ro\n\
             lxc.apparmor.profile = unconfined\nlxc.pty.max = 1\nlxc.cap.keep = sys_nice ipc_lock\n\
             lxc.{version}.cpuset.cpus = {}\n",
            root.display(),
            topology(&Real).allowed
        );
        let file = home.join("lxc.conf");
        fs::write(&file, config).unwrap();
        let (home, file) = (home.display().to_string(), file.display().to_string());
        let mut words = vec!["lxc-execute", "-P", &home, "-n", name, "-f", &file, "--"];
        words.extend(program);
        Self::started(
            &with_a_budget(&words),
            (&["lxc-info", "-P", &home, "-n", name, "-s", "-H"], "RUNNING"),
            &["lxc-stop", "-k", "-P", &home, "-n", name],
        )
    }

    fn started(words: &[String], (asks, answer): (&[&str], &'static str), removes: &[&str]) -> Self {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.spawn().unwrap();
        let mut own = Self { process, asks: owned(asks), answer, removes: owned(removes) };
        let until = Instant::now() + Duration::from_secs(60);
        while !own.runs() {
            let ended = own.process.try_wait().unwrap();
            assert!(Instant::now() < until && ended.is_none(), "it does not come up");
            std::thread::sleep(Duration::from_millis(100));
        }
        own
    }

    /// Whether it runs.
    pub fn runs(&self) -> bool {
        let shown = Command::new(&self.asks[0]).args(&self.asks[1..]).output();
        shown.is_ok_and(|shown| stdout(&shown).trim() == self.answer)
    }

    /// Ends and removes it.
    pub fn remove(mut self) {
        let removed = output(Command::new(&self.removes[0]).args(&self.removes[1..]));
        let _ = self.process.wait();
        assert!(removed.status.success(), "{}", stderr(&removed));
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The way to SCHED_FIFO in a container below the older hierarchies: without these mounts the container has no
/// separate group.
fn with_a_budget(words: &[&str]) -> Vec<String> {
    if !Path::new(BUDGETS).exists() {
        return owned(words);
    }
    let script =
        "umount /sys/fs/cgroup/cpu 2>/dev/null; umount /sys/fs/cgroup/unified 2>/dev/null; exec \"$@\"";
    owned(&[&["unshare", "-m", "sh", "-c", script, "sh"][..], words].concat())
}
