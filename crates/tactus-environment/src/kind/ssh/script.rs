//! Questions to the other machine's shell, and its answers.

use tactus_model::facts::Facts;
use tactus_model::topology::Topology;

use crate::support::shell::architecture;

/// Asks for the CPUs.
pub const TOPOLOGY: &str = "exec sh -c 'echo tactus finds $(uname -m); cd /sys/devices/system/cpu && \
grep -H . online isolated nohz_full cpu*/topology/thread_siblings_list 2>/dev/null; \
grep Cpus_allowed_list /proc/self/status; cd /sys/fs/cgroup && \
grep -H . /proc/self/cgroup $PWD/cpuset.cpus.isolated $PWD/cpuset.cpus.effective \
$PWD/*/cpuset.cpus.partition $PWD/*/cpuset.cpus.effective \
$PWD/*/*/cpuset.cpus.partition $PWD/*/*/cpuset.cpus.effective 2>/dev/null; true'";

/// The most lines of an answer: one for each of thousands of CPUs, and a few for each cgroup.
const MOST_LINES: usize = 20_000;
/// The most bytes of a line.
const LONGEST_LINE: usize = 1_000;

/// The CPUs of the other machine, from its answer.
pub fn topology(answer: &str) -> Option<Topology> {
    let mut lines = answer.lines().skip_while(|line| architecture(line).is_none());
    lines.next()?;
    let mut facts = Facts::default();
    // The other machine may answer more than it was asked.
    for line in lines.take(MOST_LINES) {
        let line = &line[..line.floor_char_boundary(LONGEST_LINE)];
        match line.split_once(':') {
            Some(("Cpus_allowed_list", cpus)) => facts.keep("sched:affinity", cpus.trim()),
            Some((path, text)) if path.starts_with('/') => {
                let before = facts.text(path).map(|lines| format!("{lines}\n")).unwrap_or_default();
                facts.keep(path, before + text);
            }
            Some((file, text)) => facts.keep(format!("/sys/devices/system/cpu/{file}"), text),
            None => {}
        }
    }
    Some(Topology::of(&facts))
}

/// The remedy for a failure that ssh or the other machine reports in these words.
pub fn hint(words: &str) -> Option<String> {
    let hints = [
        (
            "Host key verification failed",
            "its key is unknown here: connect once by hand and compare it, or add `options = \
[\"StrictHostKeyChecking=accept-new\"]`",
        ),
        (
            "Permission denied",
            "tactus sends no password: put a key there (`ssh-copy-id`), and name it with `identity`",
        ),
        ("Could not resolve", "is the name in `to` right?"),
        ("Connection refused", "does its sshd run, at this `port`?"),
        ("timed out", "is it on, and does a firewall let ssh pass?"),
        ("No route to host", "is it on, and reachable from this machine?"),
        (
            "password is required",
            "let that user run it without a password (sudoers: NOPASSWD), or leave out `sudo`",
        ),
        (
            "can hold a program",
            "mount one of /dev/shm, /run, /var/tmp, /tmp or the user's home without noexec there",
        ),
    ];
    hints.iter().find(|(word, _)| words.contains(word)).map(|(_, hint)| (*hint).to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_without_end_is_kept_as_far_as_it_can_be_meant() {
        let many = |n: u32| format!("x{n}:{}\n", "é".repeat(600));
        let answer =
            "tactus finds x86_64\nonline:0-1\n".to_owned() + &(0..60_000).map(many).collect::<String>();
        let topology = topology(&answer).unwrap();
        assert_eq!(topology.online.to_string(), "0,1");
    }

    #[test]
    fn the_question_passes_through_any_login_shell() {
        let inner = TOPOLOGY.strip_prefix("exec sh -c '").and_then(|s| s.strip_suffix('\'')).unwrap();
        assert!(!inner.contains(['\'', '\n', '!', '`']), "{inner}");
    }

    #[test]
    fn the_cpus_of_the_other_machine_are_read_behind_its_own_greetings() {
        let answer = "Welcome!\nisolated:9\ntactus finds aarch64\nonline:0-3\nisolated:2-3\n\
cpu0/topology/thread_siblings_list:0-1\ncpu1/topology/thread_siblings_list:0-1\nCpus_allowed_list:\t0-3\n";
        let topology = topology(answer).unwrap();
        assert_eq!(
            (topology.online.to_string(), topology.isolated.to_string()),
            ("0-3".into(), "2,3".into())
        );
        assert_eq!(topology.measuring().to_string(), "2,3");
        assert_eq!(topology.core_of(0).to_string(), "0,1");
        assert_eq!(super::topology("Welcome!\nonline:0-3\n"), None);
    }

    #[test]
    fn the_partitions_of_the_other_machine_are_read_there() {
        let answer = "tactus finds x86_64\nonline:0-3\nisolated:\nCpus_allowed_list:\t0-1\n\
/proc/self/cgroup:1:name=systemd:/x\n/proc/self/cgroup:0::/user.slice\n\
/sys/fs/cgroup/cpuset.cpus.effective:0-1\n/sys/fs/cgroup/rt/cpuset.cpus.partition:isolated\n\
/sys/fs/cgroup/rt/cpuset.cpus.effective:2-3\n";
        let topology = topology(answer).unwrap();
        assert_eq!(topology.isolated.to_string(), "2,3");
        assert_eq!(topology.cpuset.unwrap().path, "/user.slice");
    }

    #[test]
    fn known_failures_have_a_remedy() {
        assert!(hint("root@plc: Permission denied (publickey).").unwrap().contains("ssh-copy-id"));
        assert_eq!(hint("something else"), None);
    }

    proptest! {
        #[test]
        fn no_answer_makes_the_reader_panic(answer in "(tactus finds x\n)?.{0,300}") {
            let _ = topology(&answer);
        }
    }
}
