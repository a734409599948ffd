//! Machines that are reached by ssh, by a real Ansible: this one under several names, and one that is dead.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{PLAN, manifest, row};
use crate::common::{json, measures_beside_others, nothing_is_left, output, skipped, stderr, tactus};
use crate::sshd::Sshd;

/// Ansible, of Debian or of the tests' own tools.
fn has_ansible() -> bool {
    Command::new("ansible-playbook").arg("--version").output().is_ok_and(|out| out.status.success())
}

struct Lab {
    sshd: Sshd,
    dir: tempfile::TempDir,
}

impl Lab {
    fn new(sshd: Sshd) -> Self {
        let lab = Self { sshd, dir: tempfile::tempdir().unwrap() };
        fs::write(lab.path("plan.toml"), PLAN).unwrap();
        let program = format!(
            "#!/bin/sh\nTACTUS_LOCK={0}-$TACTUS_MACHINE\nTACTUS_CACHE_DIR={0}/cache\nexport TACTUS_LOCK TACTUS_CACHE_DIR\nexec {1} \"$@\"\n",
            lab.dir.path().display(),
            env!("CARGO_BIN_EXE_tactus")
        );
        fs::write(lab.path("tactus"), program).unwrap();
        fs::set_permissions(lab.path("tactus"), fs::Permissions::from_mode(0o755)).unwrap();
        let port = lab.sshd.spec().options["port"].to_string();
        lab.inventory(&port);
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Machines `a` and `b` behind a port, `dead` behind a closed one, and one whose name is a pattern.
    fn inventory(&self, port: &str) {
        let dir = self.dir.path().display();
        let text = format!(
            "[lab]\na\nb\ndead ansible_port=1\n[lab:vars]\nansible_host=127.0.0.1\nansible_port={port}\n\
ansible_ssh_private_key_file={}\nansible_ssh_args='-F /dev/null -o ControlMaster=no -o UserKnownHostsFile={}'\n\
ansible_python_interpreter=/usr/bin/python3\nansible_pipelining=true\nansible_async_dir={dir}/async\nansible_remote_tmp={dir}/remote\n",
            self.sshd.path("user").display(),
            self.sshd.path("known").display(),
        );
        fs::write(self.path("hosts.ini"), text).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = tactus();
        command
            .env("HOME", self.path("home"))
            .env("TACTUS_CACHE_DIR", self.path("kept"))
            .env("ANSIBLE_HOME", self.path("home"))
            .arg("fleet")
            .args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Command {
        let mut command = self.command(&["run"]);
        command
            .arg(self.path("plan.toml"))
            .args(["--on", "ansible", "--select", "lab", "--every", "1s", "--out"]);
        command.arg(self.path("fleet"));
        for (name, file) in [("inventory", "hosts.ini"), ("bring", "tactus"), ("dir", "nodes")] {
            command.arg("--with").arg(format!("{name}={}", self.path(file).display()));
        }
        command.args(["--with", "become=no"]).args(words);
        command
    }
}

#[test]
fn machines_behind_ssh_are_measured_though_links_break_and_one_is_dead() {
    let Some(_turn) = measures_beside_others() else { return };
    if !has_ansible() {
        return skipped("there is no ansible-playbook: scripts/setup.sh test installs it into target/tools");
    }
    let sshd = match Sshd::start() {
        Ok(sshd) => sshd,
        Err(why) => return skipped(&why),
    };
    let lab = Lab::new(sshd);
    let fleet = lab.path("fleet");
    let started = output(&mut lab.run(&["--wait", "1s"]));
    let words = stderr(&started);
    assert_eq!(started.status.code(), Some(3), "{words}");
    let dead = row(&fleet, "dead");
    assert_eq!(dead["state"], "away", "{dead}\n{words}");
    assert!(dead["reason"].as_str().unwrap().contains("Connection refused"), "{dead}");

    // No machine can be reached now: jobs continue, and are not given up.
    lab.inventory("1");
    let asked = output(lab.command(&["status", "--json", "--all"]).arg(&fleet));
    let document = json(&asked);
    for (name, row) in ["a", "b"].iter().zip(document["machines"].as_array().unwrap()) {
        assert_eq!((&row["machine"], &row["state"]), (&(*name).into(), &"running".into()), "{document}");
        assert!(row["reason"].as_str().unwrap().contains("unreachable"), "{row}");
    }
    let port = lab.sshd.spec().options["port"].to_string();
    lab.inventory(&port);
    let until = Instant::now() + Duration::from_secs(90);
    while row(&fleet, "a")["state"] != "measured" || row(&fleet, "b")["state"] != "measured" {
        let collected = output(lab.command(&["collect"]).arg(&fleet));
        assert!(
            Instant::now() < until,
            "{}{}",
            String::from_utf8_lossy(&collected.stdout),
            stderr(&collected)
        );
    }
    for name in ["a", "b"] {
        assert_eq!(manifest(&fleet, name)["machine"]["name"], name);
        assert_eq!(manifest(&fleet, name)["sessions"][0]["job"]["engine"], "ansible");
        let shown = output(tactus().arg("report").arg(fleet.join("bundles").join(name)));
        assert!(shown.status.code().is_some_and(|code| code != 2), "{}", stderr(&shown));
    }

    // The dead one comes back, and is the only one that is measured.
    let text = fs::read_to_string(lab.path("hosts.ini")).unwrap();
    fs::write(lab.path("hosts.ini"), text.replace("dead ansible_port=1", "dead")).unwrap();
    let again = output(&mut lab.run(&["--wait", "2m"]));
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let attempts = |name: &str| row(&fleet, name)["attempts"].clone();
    assert_eq!([attempts("a"), attempts("b"), attempts("dead")], [1, 1, 1]);
    assert!(!leaves_of(&lab.path("home")).iter().any(|name| name.contains("retry")));
    drop(lab);
    nothing_is_left();
}

fn leaves_of(dir: &Path) -> Vec<String> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect()
}
