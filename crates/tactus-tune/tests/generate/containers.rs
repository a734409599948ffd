//! The generated script for Podman, run on this machine: the container has its CPUs, and its threads may
//! be FIFO.

use std::path::Path;
use std::process::Command;

use tactus_system::Real;
use tactus_system::topology;
use tactus_tune::generate::GuestOptions;

use crate::common::{generated, has, run, skipped, words};

/// Gone again when the test ends.
struct Budget;

impl Drop for Budget {
    fn drop(&mut self) {
        let _ = Command::new("sh")
            .args(["-c", "find /sys/fs/cgroup/*/tactus-rt -depth -type d -exec rmdir {} + 2>/dev/null"])
            .status();
    }
}

#[test]
fn podman_runs_with_the_flags_and_fifo_is_allowed_inside() {
    if !has("podman") || !has("busybox") {
        return;
    }
    if !rustix::process::getuid().is_root() {
        return skipped("only root gives a container these capabilities");
    }
    let topology = topology(&Real);
    let Some(cpu) = topology.online.last().filter(|cpu| *cpu > 0) else {
        return skipped("there is one CPU only");
    };
    let mut facts = tactus_system::facts(&Real, &topology, std::process::id()).unwrap();
    // A hardware thread beside it keeps house: good enough to see the flags work.
    for online in topology.online.iter() {
        let siblings = format!("/sys/devices/system/cpu/cpu{online}/topology/thread_siblings_list");
        facts.keep(siblings, online.to_string());
    }
    let dir = generated(
        "podman",
        &facts,
        &cpu.to_string(),
        &GuestOptions { name: "tactus-test".into(), ..GuestOptions::default() },
    );
    let script = dir.path().join("tactus-test-podman.sh");
    let mut text = std::fs::read_to_string(&script).unwrap();
    let v1 = facts.text("/proc/self/cgroup").unwrap_or_default().lines().any(|line| line.contains(":cpu"));
    let mut command = Command::new(&script);
    command.args(["--network=none", "--no-hosts", "--log-driver=none"]);
    if v1 {
        // crun refuses cgroup v1 with v2 beside it.
        if !has("runc") {
            return;
        }
        command.arg("--runtime=runc");
    }
    const CAP_SYS_RESOURCE: u64 = 1 << 24;
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let caps = own.lines().find_map(|line| line.strip_prefix("CapEff:\t")).unwrap();
    if u64::from_str_radix(caps, 16).unwrap() & CAP_SYS_RESOURCE == 0 {
        // Such a root may raise no limit, of which Podman raises two by itself.
        text = text
            .lines()
            .filter(|line| !line.starts_with("set -- --ulimit"))
            .map(|line| format!("{line}\n"))
            .collect();
        std::fs::write(&script, text).unwrap();
        command.args(["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]);
    }
    let _budget = Budget;
    let root = rootfs(dir.path());
    command.arg("--rootfs").arg(&root).args(["/busybox", "sh", "-c"]);
    command
        .arg("/busybox grep Cpus_allowed_list /proc/self/status; /chrt -f 10 /busybox echo fifo is allowed");
    let output = run(&mut command);
    let said = words(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("Cpus_allowed_list:\t{cpu}\n")), "{said}");
    assert!(said.contains("fifo is allowed"), "{said}");
}

/// A root file system with busybox and chrt, and the libraries of the latter where ldd finds them.
fn rootfs(dir: &Path) -> std::path::PathBuf {
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
