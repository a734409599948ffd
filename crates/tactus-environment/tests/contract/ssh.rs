//! Rules for an environment on another machine.

use std::time::{Duration, Instant};

use tactus_environment::{Environment, find};
use tactus_model::plan;
use tactus_system::Real;

use super::conversation::Conversation;
use super::sshd::Sshd;
use super::{beside_others, leftovers, skipped};

fn server() -> Option<(&'static (dyn Environment + Sync), Sshd)> {
    match Sshd::start() {
        Ok(server) => Some((find("ssh").unwrap(), server)),
        Err(why) => {
            skipped(&why);
            None
        }
    }
}

/// Directories that a probe was put into and that are still there.
fn left(id: &str) -> Vec<String> {
    let dirs = ["/dev/shm", "/run", "/var/tmp", "/tmp"];
    let entries = dirs.iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten());
    entries.map(|entry| entry.path().display().to_string()).filter(|path| path.contains(id)).collect()
}

fn end_of(what: &str, mut is: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_connection_that_is_cut_leaves_nothing_on_the_other_machine() {
    let _turn = beside_others();
    let Some((ssh, server)) = server() else { return };
    let mut talk = Conversation::begin(ssh, &server.spec()).unwrap();
    talk.greet();
    talk.measure_for(Duration::from_secs(600));
    let id = talk.id().to_owned();
    assert_eq!(left(&id), [""; 0], "its file is gone while it measures");
    // Only our end of the connection.
    let ours = leftovers::marked(&id).into_iter().find(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "ssh")
    });
    let killed = std::process::Command::new("kill").args(["-9", &ours.unwrap().to_string()]).status();
    assert!(killed.unwrap().success());
    end_of("the probe goes on without its connection", || leftovers::marked(&id).is_empty());
    assert_eq!(left(&id), [""; 0]);
    assert!(talk.hears_the_end());
    let words = talk.running.last_words().unwrap();
    assert!(words.contains("killed"), "{words}");
    talk.end();
}

#[test]
fn the_cpus_of_another_machine_are_read_there() {
    let _turn = beside_others();
    let Some((ssh, server)) = server() else { return };
    let there = ssh.topology(&server.spec(), &Real).unwrap();
    let here = tactus_system::topology(&Real);
    assert_eq!((there.online, there.cores), (here.online, here.cores));
}

#[test]
fn what_ssh_refuses_is_told_in_its_words_with_a_remedy() {
    let _turn = beside_others();
    let Some((ssh, server)) = server() else { return };
    let with = |key: &str, value: serde_json::Value| {
        let mut spec = server.spec();
        spec.options.insert(key.into(), value);
        spec
    };
    let other_key = server.path("host").display().to_string();
    let cases: [(plan::Environment, &str, &str); 3] = [
        (
            with("options", serde_json::json!(["UserKnownHostsFile=/dev/null"])),
            "Host key verification",
            "accept-new",
        ),
        (with("identity", other_key.into()), "Permission denied", "ssh-copy-id"),
        (with("port", 1.into()), "Connection refused", "port"),
    ];
    for (spec, words, remedy) in cases {
        let error = ssh.topology(&spec, &Real).unwrap_err();
        assert!(error.reason.contains(words), "{error}; the server says: {}", server.log());
        assert!(error.hint.as_ref().is_some_and(|hint| hint.contains(remedy)), "{error:?}");
        let Err(error) = Conversation::begin(ssh, &spec) else { panic!("{words}") };
        assert!(error.reason.contains(words) && error.hint.is_some(), "{error}");
    }
}
