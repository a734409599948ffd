//! A cluster of Slurm on this machine: a controller and six nodes, each with a separate slurmd and munged. The
//! machine's own Slurm, if it has one, is not used.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAMS: [&str; 7] = ["munged", "slurmctld", "slurmd", "sinfo", "sbatch", "scontrol", "setpriv"];
pub const NODES: [&str; 6] = ["n1", "n2", "n3", "n4", "n5", "n6"];

/// A cluster that runs. Dropping it ends all of it, jobs too.
pub struct Cluster {
    dir: tempfile::TempDir,
    daemons: Vec<Child>,
    nodes: BTreeMap<&'static str, Child>,
}

impl Cluster {
    /// Starts it; else what is missing.
    pub fn start() -> Result<Self, String> {
        for program in PROGRAMS {
            let there = ["/usr/sbin", "/usr/bin"].iter().any(|dir| Path::new(dir).join(program).exists());
            if !there {
                return Err(format!("there is no {program}: install slurm-wlm and munge"));
            }
        }
        if !rustix::process::geteuid().is_root() {
            return Err("a cluster of Slurm is started by root".into());
        }
        let dir = tempfile::tempdir().unwrap();
        let mut cluster = Self { dir, daemons: Vec::new(), nodes: BTreeMap::new() };
        fs::set_permissions(cluster.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        for sub in ["log", "state", "spool", "munge", "cache"] {
            fs::create_dir(cluster.path(sub)).unwrap();
        }
        cluster.munge();
        cluster.configure();
        cluster.program();
        let mut controller = cluster.command("slurmctld");
        controller.arg("-D").stdout(Stdio::null()).stderr(Stdio::null());
        cluster.daemons.push(controller.spawn().unwrap());
        for node in NODES {
            cluster.start_node(node);
        }
        cluster.await_state(&NODES, "idle");
        Ok(cluster)
    }

    /// A file of it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A command with its configuration.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.path("slurm.conf")).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.stdin(Stdio::null());
        command
    }

    /// Says something to the controller, which may be busy at first.
    pub fn control(&self, words: &[&str]) -> Output {
        self.command("scontrol").args(words).output().unwrap()
    }

    /// Starts the agent of a node.
    pub fn start_node(&mut self, node: &'static str) {
        let mut agent = self.command("slurmd");
        agent.args(["-D", "-N", node]).stdout(Stdio::null()).stderr(Stdio::null());
        self.nodes.insert(node, agent.spawn().unwrap());
    }

    /// Kills the agent of a node, and nothing else there.
    pub fn kill_agent(&mut self, node: &str) {
        let mut agent = self.nodes.remove(node).unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    /// Kills all that runs on a node, at once.
    pub fn kill_node(&mut self, node: &str) {
        self.kill_agent(node);
        let of_node = format!("SLURMD_NODENAME={node}");
        while self.kill_all(|environ, command| {
            environ.contains(&of_node) || command.contains(&format!("slurmstepd: [{}", self.job_of(node)))
        }) {}
    }

    fn job_of(&self, node: &str) -> String {
        let said = self.command("squeue").args(["-h", "-o", "%i", "-w", node]).output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        text.lines().next().unwrap_or("none").trim().to_owned()
    }

    /// Waits until these nodes are in a state.
    pub fn await_state(&self, nodes: &[&str], state: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let said = self.command("sinfo").args(["-h", "-N", "-o", "%N %T"]).output().unwrap();
            let text = String::from_utf8_lossy(&said.stdout).into_owned();
            if nodes.iter().all(|node| text.lines().any(|line| line == format!("{node} {state}"))) {
                return;
            }
            assert!(Instant::now() < until, "{nodes:?} are not {state}:\n{text}{}", self.log("ctld"));
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The log of a daemon.
    pub fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("log/{name}.log"))).unwrap_or_default()
    }

    fn munge(&mut self) {
        let at = |name: &str| self.path("munge").join(name).display().to_string();
        fs::write(at("key"), (0..=255u8).cycle().take(1024).collect::<Vec<u8>>()).unwrap();
        fs::set_permissions(at("key"), fs::Permissions::from_mode(0o400)).unwrap();
        let given =
            Command::new("chown").args(["-R", "munge:munge"]).arg(self.path("munge")).status().unwrap();
        assert!(given.success());
        let mut munged = Command::new("setpriv");
        munged.args(["--reuid=munge", "--regid=munge", "--clear-groups", "munged", "--foreground"]);
        for (option, file) in [
            ("key-file", "key"),
            ("socket", "socket"),
            ("pid-file", "pid"),
            ("log-file", "log"),
            ("seed-file", "seed"),
        ] {
            munged.arg(format!("--{option}={}", at(file)));
        }
        let munged = munged.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.daemons.push(munged);
        let until = Instant::now() + Duration::from_secs(10);
        while !self.path("munge/socket").exists() {
            assert!(
                Instant::now() < until,
                "munged: {}",
                fs::read_to_string(self.path("munge/log")).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn configure(&self) {
        let listeners: Vec<TcpListener> =
            (0..=NODES.len()).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> =
            listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let (host, dir) = (host.trim(), self.dir.path().display());
        let mut text = format!(
            "ClusterName=tactus-test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\n\
SlurmdUser=root\nAuthInfo=socket={dir}/munge/socket\nStateSaveLocation={dir}/state\nSlurmdSpoolDir={dir}/spool/%n\n\
SlurmdLogFile={dir}/log/%n.log\nSlurmdPidFile={dir}/%n.pid\nSlurmctldPidFile={dir}/ctld.pid\n\
SlurmctldLogFile={dir}/log/ctld.log\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSlurmdParameters=config_overrides\nReturnToService=2\n\
SlurmdTimeout=5\nSchedulerParameters=batch_sched_delay=0,sched_interval=2\n",
            ports[0]
        );
        for (node, port) in NODES.iter().zip(&ports[1..]) {
            text += &format!(
                "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=100 Feature=rt\n"
            );
        }
        text += "PartitionName=lab Nodes=ALL Default=YES MaxTime=1:00:00 State=UP OverSubscribe=EXCLUSIVE\n";
        fs::write(self.path("slurm.conf"), text).unwrap();
    }

    /// The program that jobs start: tactus, with a lock for each node. The nodes are one machine.
    fn program(&self) {
        let text = format!(
            "#!/bin/sh\nTACTUS_LOCK=$SLURM_CONF-$SLURMD_NODENAME\nTACTUS_CACHE_DIR={}\nexport TACTUS_LOCK TACTUS_CACHE_DIR\n\
exec {} \"$@\"\n",
            self.path("cache").display(),
            env!("CARGO_BIN_EXE_tactus")
        );
        fs::write(self.path("tactus"), text).unwrap();
        fs::set_permissions(self.path("tactus"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Kills the processes of this cluster that are meant; whether there were any.
    fn kill_all(&self, meant: impl Fn(&str, &str) -> bool) -> bool {
        let own = format!("SLURM_CONF={}", self.path("slurm.conf").display());
        let mut killed = false;
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
            let text = |name| fs::read(entry.path().join(name)).unwrap_or_default();
            let environ = String::from_utf8_lossy(&text("environ")).into_owned();
            let command = String::from_utf8_lossy(&text("cmdline")).replace('\0', " ");
            // Guardians take back what a run has changed.
            let guards = command.split(' ').nth(1) == Some("guardian");
            if environ.split('\0').any(|word| word == own) && !guards && meant(&environ, &command) {
                let pid = rustix::process::Pid::from_raw(pid).unwrap();
                killed |= rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok();
            }
        }
        killed
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The agents first, so that none starts anything else.
        for mut agent in std::mem::take(&mut self.nodes).into_values() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        let until = Instant::now() + Duration::from_secs(10);
        while self.kill_all(|_, command| !command.contains("slurmctld")) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        for mut daemon in std::mem::take(&mut self.daemons) {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
