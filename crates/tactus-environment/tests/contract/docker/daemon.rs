//! A Docker daemon of our own, which a user's knows nothing of, and which leaves nothing.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Directories that Docker makes outside of those that it is given.
const COMMON: [&str; 4] = ["/run/docker/plugins", "/run/docker", "/run/containerd/s", "/run/containerd"];

/// A daemon; dropping it ends it and removes what it made.
pub struct Daemon {
    process: Child,
    pub(super) dir: TempDir,
    /// Of the common directories those that were not there before, innermost first.
    pub(super) made: Vec<&'static str>,
    parent: String,
}

impl Daemon {
    /// Starts one; `None` when there is no dockerd.
    pub fn start() -> Option<Self> {
        let program =
            ["/usr/sbin/dockerd", "/usr/bin/dockerd"].into_iter().find(|path| Path::new(path).exists())?;
        let dir = tempfile::Builder::new().prefix("tactus-docker-").tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        let parent = dir.path().file_name().unwrap().to_str().unwrap().to_lowercase();
        // Its identity belongs to /etc/docker otherwise.
        let config = format!("{{\"deprecated-key-path\": \"{}\"}}", at("key.json"));
        fs::write(at("daemon.json"), config).unwrap();
        let made = COMMON.into_iter().filter(|path| !Path::new(path).exists()).collect();
        let log = fs::File::create(at("log")).unwrap();
        let process = Command::new("setpriv")
            // It must end with a test that is killed.
            .args(["--pdeathsig", "TERM", "--", program])
            .arg(format!("--config-file={}", at("daemon.json")))
            .arg(format!("--host=unix://{}", at("docker.sock")))
            .arg(format!("--data-root={}", at("data")))
            .arg(format!("--exec-root={}", at("exec")))
            .arg(format!("--pidfile={}", at("pid")))
            .arg(format!("--cgroup-parent=/{parent}"))
            .args([
                "--exec-opt=native.cgroupdriver=cgroupfs",
                "--bridge=none",
                "--iptables=false",
                "--ip-forward=false",
            ])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        let mut daemon = Self { process, dir, made, parent };
        let until = Instant::now() + Duration::from_secs(60);
        while !daemon.client(&["version"]).status.success() {
            let log = fs::read_to_string(daemon.dir.path().join("log")).unwrap_or_default();
            assert!(daemon.process.try_wait().unwrap().is_none(), "the Docker daemon ended: {log}");
            assert!(Instant::now() < until, "the Docker daemon does not answer: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(daemon)
    }

    /// Its socket, as a plan names it.
    pub fn host(&self) -> String {
        format!("unix://{}", self.dir.path().join("docker.sock").display())
    }

    /// Runs its client.
    pub fn client(&self, words: &[&str]) -> std::process::Output {
        Command::new("docker").arg("-H").arg(self.host()).args(words).output().unwrap()
    }

    /// The containers and images of a run.
    pub fn has(&self, id: &str) -> Vec<String> {
        let asked = [
            &["ps", "-a", "--format", "{{.Names}}"][..],
            &["images", "--format", "{{.Repository}}:{{.Tag}}"],
        ];
        let lines = asked.into_iter().flat_map(|words| {
            let output = self.client(words);
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        });
        lines.filter(|line| line.contains(id)).collect()
    }

    /// The group that its containers lie in, in the v1 hierarchy of a controller.
    pub fn group(&self, controller: &str) -> PathBuf {
        Path::new("/sys/fs/cgroup").join(controller).join(&self.parent)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let until = Instant::now() + Duration::from_secs(20);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        let hierarchies =
            fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().map(|entry| entry.path());
        for hierarchy in hierarchies.chain([PathBuf::from("/sys/fs/cgroup")]) {
            let _ = fs::remove_dir(hierarchy.join(&self.parent));
        }
        for dir in &self.made {
            let _ = fs::remove_dir(dir);
        }
    }
}
