//! What is said to the other machine's shell, and what it answers. Each script is one line without single
//! quotes: it passes through the user's login shell, whichever that is, and is read by `sh`.

use tactus_model::facts::Facts;
use tactus_model::topology::Topology;

/// How the line begins in which the other machine names its architecture. Lines before it are those of
/// the user's own start-up files.
const GREETING: &str = "tactus finds ";

/// Asks for the CPUs.
pub const TOPOLOGY: &str = "exec sh -c 'echo tactus finds $(uname -m); cd /sys/devices/system/cpu && \
grep -H . online isolated nohz_full cpu*/topology/thread_siblings_list 2>/dev/null; \
grep Cpus_allowed_list /proc/self/status'";

/// The CPUs of the other machine, from its answer.
pub fn topology(answer: &str) -> Option<Topology> {
    let mut lines = answer.lines().skip_while(|line| architecture(line).is_none());
    lines.next()?;
    let mut facts = Facts::default();
    for line in lines {
        match line.split_once(':') {
            Some(("Cpus_allowed_list", cpus)) => facts.keep("sched:affinity", cpus.trim()),
            Some((file, text)) => facts.keep(format!("/sys/devices/system/cpu/{file}"), text),
            None => {}
        }
    }
    Some(Topology::of(&facts))
}

/// The architecture that a greeting names.
pub fn architecture(line: &str) -> Option<&str> {
    line.trim_end().strip_prefix(GREETING).filter(|name| !name.is_empty() && !name.contains(' '))
}

/// Takes the probe in and runs it. It says its architecture, reads a line with the number of bytes and
/// then these bytes. The probe lies in a directory of its own where programs may be executed, until it
/// removes both; whatever ends this shell before that removes them, too.
pub fn run((marker, id): (&str, &str), sudo: bool) -> String {
    let sudo = if sudo { "sudo -n " } else { "" };
    format!(
        "exec sh -c 'umask 077; d=; trap \"rm -rf \\\"\\$d\\\"\" EXIT; trap \"exit 1\" HUP INT TERM; \
for b in \"$XDG_RUNTIME_DIR\" /dev/shm /run /var/tmp /tmp \"$HOME\"; do [ -d \"$b\" ] || continue; \
d=$(mktemp -d \"$b/tactus-{id}.XXXXXX\" 2>/dev/null) || continue; \
printf \"#\\041/bin/sh\\n\" >\"$d/probe\" && chmod 700 \"$d/probe\" && \"$d/probe\" 2>/dev/null && break; \
rm -rf \"$d\"; d=; done; \
[ -n \"$d\" ] || {{ echo no directory there can hold a program: each is missing, full, read-only or noexec >&2; exit 126; }}; \
echo tactus finds $(uname -m); read n; head -c \"$n\" >\"$d/probe\"; \
[ \"$(wc -c <\"$d/probe\")\" -eq \"$n\" ] || {{ echo the probe arrived cut >&2; exit 125; }}; \
{sudo}env {marker}={id} \"$d/probe\" fleeting'"
    )
}

/// What helps against a failure that ssh or the other machine tells in these words.
pub fn hint(words: &str) -> Option<String> {
    let hints = [
        (
            "Host key verification failed",
            "its key is not known here: connect once by hand and compare it, or add \
`options = [\"StrictHostKeyChecking=accept-new\"]`",
        ),
        ("Permission denied", "tactus gives no password: put a key there (`ssh-copy-id`), and name it with `identity`"),
        ("Could not resolve", "is the name in `to` right?"),
        ("Connection refused", "does its sshd run, and at this `port`?"),
        ("timed out", "is it on, and does a firewall let ssh pass?"),
        ("No route to host", "is it on, and in reach of this machine?"),
        ("password is required", "let that user run it without a password (sudoers: NOPASSWD), or leave out `sudo`"),
        ("can hold a program", "mount one of /dev/shm, /run, /var/tmp, /tmp or the user's home without noexec there"),
    ];
    hints.iter().find(|(word, _)| words.contains(word)).map(|(_, hint)| (*hint).to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scripts_pass_through_any_login_shell() {
        for script in [TOPOLOGY.to_owned(), run(("TACTUS_RUN", "1-a"), true)] {
            let inner = script.strip_prefix("exec sh -c '").and_then(|s| s.strip_suffix('\'')).unwrap();
            assert!(!inner.contains(['\'', '\n', '!', '`']), "{inner}");
        }
    }

    #[test]
    fn the_cpus_of_the_other_machine_are_read_behind_its_own_greetings() {
        let answer = "Welcome!\nisolated:9\ntactus finds aarch64\nonline:0-3\nisolated:2-3\n\
cpu0/topology/thread_siblings_list:0-1\ncpu1/topology/thread_siblings_list:0-1\nCpus_allowed_list:\t0-3\n";
        let topology = topology(answer).unwrap();
        assert_eq!((topology.online.to_string(), topology.isolated.to_string()), ("0-3".into(), "2,3".into()));
        assert_eq!(topology.measuring().to_string(), "2,3");
        assert_eq!(topology.core_of(0).to_string(), "0,1");
        assert_eq!(super::topology("Welcome!\nonline:0-3\n"), None);
        assert_eq!(architecture("tactus finds x86_64\r"), Some("x86_64"));
        assert_eq!(architecture("tactus finds what it wants"), None);
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
