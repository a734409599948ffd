//! A libvirt of our own: its daemon in a mount namespace in which every directory of libvirt is private, so
//! that a user's libvirt on this machine is not touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long the daemon may take to answer: it first asks every QEMU what it can.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where its part of the cgroups lies.
const CGROUPS: &str = "/sys/fs/cgroup";
/// The capabilities of every QEMU: asking takes a daemon ten seconds, and the next one reads them here. libvirt
/// itself checks whether they are up to date.
const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/libvirt");
static TURN: Mutex<()> = Mutex::new(());

/// With budgets for real-time groups (RT_GROUP_SCHED) the daemon must not see the `cpu` controller.
const SCRIPT: &str = r#"
mount --bind "$1/run" /run &&
mount --bind "$1/lib" /var/lib/libvirt &&
mount --bind "$4" /var/cache/libvirt &&
mount --bind "$1/log" /var/log/libvirt &&
mount --bind "$1/etc" /etc/libvirt || exit 1
[ "$2" = plain ] || [ ! -e /sys/fs/cgroup/cpu/cpu.rt_runtime_us ] || umount /sys/fs/cgroup/cpu || exit 1
exec "$3" -f "$1/libvirtd.conf" -p "$1/pid"
"#;

/// A libvirt of our own, one at a time: they share the cgroups. Dropping it ends it.
pub struct Libvirtd {
    daemon: Child,
    dir: TempDir,
    before: Vec<PathBuf>,
    _turn: MutexGuard<'static, ()>,
}

impl Libvirtd {
    /// Starts one; `None` where its daemon is not installed or this user may not.
    pub fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// One whose domains get cgroups that have no real-time budget, where the kernel has budgets.
    pub fn without_budget() -> Option<Self> {
        Self::start_with("plain")
    }

    fn start_with(cpu: &str) -> Option<Self> {
        let daemon =
            ["/usr/sbin/libvirtd", "/usr/bin/libvirtd"].into_iter().find(|path| Path::new(path).exists())?;
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        fs::create_dir_all(CACHE).unwrap();
        for name in ["run", "lib", "lib/boot", "lib/images", "lib/qemu", "log", "etc", "etc/qemu", "sock"] {
            fs::create_dir_all(at.join(name)).unwrap();
        }
        let settings = format!(
            "auth_unix_rw = \"none\"\nauth_unix_ro = \"none\"\nunix_sock_dir = \"{}/sock\"\n",
            at.display()
        );
        fs::write(at.join("libvirtd.conf"), settings).unwrap();
        // Without the users it takes 44 s to create a domain, and without the handler a second daemon.
        fs::write(at.join("etc/qemu.conf"), "user = \"root\"\ngroup = \"root\"\nstdio_handler = \"file\"\n")
            .unwrap();
        let said = fs::File::create(at.join("said")).unwrap();
        let before = machines();
        let daemon = Command::new("unshare")
            .args(["-m", "sh", "-c", SCRIPT, "sh"])
            .arg(at)
            .args([cpu, daemon, CACHE])
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn()
            .unwrap();
        let mut libvirtd = Self { daemon, dir, before, _turn: turn };
        let until = Instant::now() + PATIENCE;
        while !libvirtd.virsh(&["uri"]).0 {
            let ended = libvirtd.daemon.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < until,
                "the private libvirtd does not answer ({ended:?}): {}",
                fs::read_to_string(libvirtd.dir.path().join("said")).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(libvirtd)
    }

    /// Where it is.
    pub fn uri(&self) -> String {
        format!("qemu+unix:///system?socket={}/sock/libvirt-sock", self.dir.path().display())
    }

    /// Its answer, and whether it succeeded.
    pub fn virsh(&self, words: &[&str]) -> (bool, String) {
        let output = Command::new("virsh").args(["-q", "-c", &self.uri()]).args(words).output().unwrap();
        let text = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.success(), String::from_utf8_lossy(&text).trim().to_owned())
    }
}

/// The cgroups that libvirt puts its domains into, in every hierarchy.
fn machines() -> Vec<PathBuf> {
    let hierarchies = fs::read_dir(CGROUPS).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = hierarchies.chain([PathBuf::from(CGROUPS)]);
    all.map(|dir| dir.join("machine")).filter(|dir| dir.is_dir()).collect()
}

impl Drop for Libvirtd {
    fn drop(&mut self) {
        // Domains that a test has not ended.
        for name in self.virsh(&["list", "--name"]).1.split_whitespace() {
            self.virsh(&["destroy", name]);
        }
        let pid = rustix::process::Pid::from_child(&self.daemon);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let until = Instant::now() + Duration::from_secs(5);
        while matches!(self.daemon.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        for dir in machines().into_iter().filter(|dir| !self.before.contains(dir)) {
            // Only an empty one is removed: it may hold another libvirt's domains.
            let _ = fs::remove_dir(dir);
        }
    }
}
