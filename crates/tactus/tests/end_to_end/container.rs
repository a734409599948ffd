//! A container of a user's own, which tactus attaches to.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{output, stderr, stdout};

/// One that runs.
pub struct Container {
    name: String,
    podman: Child,
}

impl Container {
    /// Starts a program of a root directory in one, with what a real-time thread needs, and waits until it runs.
    pub fn running(name: &str, root: &Path, program: &[&str]) -> Self {
        // As a user must who wants SCHED_FIFO in a container below the older hierarchies.
        let script =
            "umount /sys/fs/cgroup/cpu 2>/dev/null; umount /sys/fs/cgroup/unified 2>/dev/null; exec \"$@\"";
        let mut run = if Path::new("/sys/fs/cgroup/cpu/cpu.rt_runtime_us").exists() {
            let mut run = Command::new("unshare");
            run.args(["-m", "sh", "-c", script, "sh", "podman"]);
            run
        } else {
            Command::new("podman")
        };
        run.args(["run", "--rm", "--runtime=crun", "--network=none", "--log-driver=none", "--name", name])
            .args(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"])
            .args(["--cap-add=SYS_NICE", "--cap-add=IPC_LOCK", "--rootfs"])
            .arg(root)
            .args(program)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut own = Self { name: name.to_owned(), podman: run.spawn().unwrap() };
        let until = Instant::now() + Duration::from_secs(60);
        while !own.runs() {
            let ended = own.podman.try_wait().unwrap();
            assert!(Instant::now() < until && ended.is_none(), "it does not come up");
            std::thread::sleep(Duration::from_millis(100));
        }
        own
    }

    /// Whether it runs.
    pub fn runs(&self) -> bool {
        let shown =
            Command::new("podman").args(["inspect", "--format", "{{.State.Running}}", &self.name]).output();
        shown.is_ok_and(|shown| stdout(&shown).trim() == "true")
    }

    /// Ends and removes it.
    pub fn remove(mut self) {
        let removed = output(Command::new("podman").args(["rm", "-f", "-t", "0", &self.name]));
        let _ = self.podman.wait();
        assert!(removed.status.success(), "{}", stderr(&removed));
    }
}
