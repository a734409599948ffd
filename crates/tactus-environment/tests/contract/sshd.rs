//! A separate server on the loopback, with new keys: neither the machine's server nor a user's configuration takes
//! part.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tactus_model::plan;

/// The server needs this directory when root starts it.
const EMPTY: &str = "/run/sshd";

/// A server that runs. Dropping it removes all of it.
pub struct Sshd {
    server: Child,
    dir: tempfile::TempDir,
    port: u16,
    made_empty: bool,
}

impl Sshd {
    /// Starts it; else what is missing.
    pub fn start() -> Result<Self, String> {
        let program = ["/usr/sbin/sshd", "/usr/bin/sshd"].into_iter().find(|path| Path::new(path).exists());
        let program = program.ok_or("there is no sshd: install the package openssh-server")?;
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        for key in ["host", "user"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", &path(key)];
            assert!(Command::new("ssh-keygen").args(words).status().unwrap().success());
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile {}\nAuthorizedKeysFile {}\nStrictModes no\n\
UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n",
            path("host"),
            path("pid"),
            path("user.pub"),
        );
        std::fs::write(path("config"), config).unwrap();
        let host = std::fs::read_to_string(path("host.pub")).unwrap();
        std::fs::write(path("known"), format!("[127.0.0.1]:{port} {host}")).unwrap();
        let made_empty = !Path::new(EMPTY).exists() && std::fs::create_dir(EMPTY).is_ok();
        let log = std::fs::File::create(path("log")).unwrap();
        let mut server = Command::new(program);
        let server = server.args(["-D", "-e", "-f", &path("config")]).stderr(log).stdin(Stdio::null());
        let sshd = Self { server: server.spawn().unwrap(), dir, port, made_empty };
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "sshd: {}", sshd.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(sshd)
    }

    /// A file of it: `user`, `known`, `log`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// A plan's table for this machine by way of it.
    pub fn spec(&self) -> plan::Environment {
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap();
        let known = format!("UserKnownHostsFile={}", self.path("known").display());
        let mut spec = super::spec("ssh", &[("to", &format!("{}@127.0.0.1", user.trim()))]);
        spec.options.insert("port".into(), self.port.into());
        spec.options.insert("identity".into(), self.path("user").display().to_string().into());
        spec.options.insert("options".into(), serde_json::json!([known]));
        spec
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        if self.made_empty {
            let _ = std::fs::remove_dir(EMPTY);
        }
    }
}
