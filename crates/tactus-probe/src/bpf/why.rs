//! Why BPF is refused, in words, and what would help: a refusal is a number, and the same one for four
//! reasons.

use std::io::{self, ErrorKind};

/// The requests to the kernel, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The memory that the program and the worker share.
    Memory,
    /// The types of the program.
    Types,
    /// The program.
    Program,
    /// The event that interrupts the CPU.
    Clock,
    /// That the one runs at the other.
    Attach,
    /// The program of a tracepoint and its memory, which need nothing as new as that.
    Counter,
    /// A tracepoint.
    Tracepoint,
}

/// The properties of the kernel and of this process.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// `6.1.0-56-rt-amd64`.
    pub release: String,
    /// `/proc/self/status`.
    pub status: String,
    /// `/proc/self/uid_map`.
    pub uid_map: String,
    /// `/sys/kernel/security/lockdown`.
    pub lockdown: String,
}

/// Capabilities that it takes, with their numbers (linux/capability.h): each of the two can be had by the third.
const NEEDED: [(&str, u32); 2] = [("CAP_BPF", 39), ("CAP_PERFMON", 38)];
const SYS_ADMIN: u32 = 21;
/// The first kernel that has `bpf_loop`.
const FIRST: (u32, u32) = (5, 17);

impl Place {
    /// This one.
    pub fn here() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            release: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            status: read("/proc/self/status"),
            uid_map: read("/proc/self/uid_map"),
            lockdown: read("/sys/kernel/security/lockdown"),
        }
    }

    fn status(&self, key: &str) -> Option<&str> {
        self.status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
    }

    /// The capabilities that are lacking.
    fn lacks(&self) -> Vec<&'static str> {
        let mask =
            self.status("CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(u64::MAX);
        let has = |number: u32| mask >> number & 1 == 1;
        let lacks = NEEDED.into_iter().filter(|(_, number)| !has(*number) && !has(SYS_ADMIN));
        lacks.map(|(name, _)| name).collect()
    }

    /// Whether the kernel is older than required.
    fn is_old(&self) -> bool {
        let mut numbers = self.release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        matches!((numbers.next(), numbers.next()), (Some(major), Some(minor)) if (major, minor) < FIRST)
    }
}

/// Why, as the end of a sentence; `said`: the verifier's own words.
pub fn reason(step: Step, error: &io::Error, said: &str, place: &Place) -> String {
    let what = match step {
        Step::Memory => "a BPF map",
        Step::Types => "the types of a BPF program",
        Step::Program => "a BPF program",
        Step::Counter => "a BPF program or its map",
        Step::Clock => "a performance event on another CPU's clock",
        Step::Tracepoint => "a performance event at a tracepoint",
        Step::Attach => "a BPF program at a performance event",
    };
    let refused = [what, " is refused (", &error.to_string(), ")"].concat();
    let release = place.release.as_str();
    let because = match error.kind() {
        _ if error.raw_os_error() == Some(libc::ENOSYS) => {
            "the kernel is built without it (CONFIG_BPF_SYSCALL, CONFIG_PERF_EVENTS), or a filter (seccomp) hides it".to_owned()
        }
        ErrorKind::PermissionDenied => denied(place),
        _ if !matches!(step, Step::Counter | Step::Tracepoint) && place.is_old() => ["Linux ", release, " has no bpf_loop; it came with 5.17"].concat(),
        _ => last_line(said).to_owned(),
    };
    if because.is_empty() { refused } else { [&refused, ": ", &because].concat() }
}

fn denied(place: &Place) -> String {
    let lacks = place.lacks();
    let own = place.uid_map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"];
    if !lacks.is_empty() {
        ["this process has no ", &lacks.join(" and no ")].concat()
    } else if own && !place.uid_map.is_empty() {
        "capabilities in a user namespace (rootless) do not count".to_owned()
    } else if place.status("Seccomp").is_some_and(|mode| mode != "0") {
        "it has the capabilities, but a filter of system calls (seccomp) is on".to_owned()
    } else if place.lockdown.contains("[confidentiality]") || place.lockdown.contains("[integrity]") {
        ["this kernel is locked down: ", place.lockdown.trim()].concat()
    } else {
        "it has the capabilities: a security module refuses it".to_owned()
    }
}

/// The last message of the verifier before its statistics.
fn last_line(said: &str) -> &str {
    let mut lines =
        said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("processed "));
    lines.next_back().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "CapEff:\t000001ffffffffff\nSeccomp:\t0\n";
    /// Podman's default, and with SYS_NICE and IPC_LOCK.
    const CONTAINER: &str = "CapEff:\t0000000080c2c4fb\nSeccomp:\t2\n";

    fn place(release: &str, status: &str) -> Place {
        Place {
            release: release.into(),
            status: status.into(),
            uid_map: "         0          0 4294967295\n".into(),
            lockdown: "[none] integrity confidentiality\n".into(),
        }
    }

    fn why(step: Step, errno: i32, said: &str, place: &Place) -> String {
        reason(step, &io::Error::from_raw_os_error(errno), said, place)
    }

    #[test]
    fn a_container_is_told_which_capabilities_it_lacks() {
        let said = why(Step::Memory, libc::EPERM, "", &place("6.1.0", CONTAINER));
        assert!(said.starts_with("a BPF map is refused (Operation not permitted"), "{said}");
        assert!(said.ends_with("this process has no CAP_BPF and no CAP_PERFMON"), "{said}");
        let bpf_alone = place("6.1.0", "CapEff:\t0000008000000000\n");
        assert!(why(Step::Clock, libc::EACCES, "", &bpf_alone).ends_with("has no CAP_PERFMON"));
        let admin = place("6.1.0", "CapEff:\t0000000000200000\nSeccomp:\t2\n");
        assert!(why(Step::Memory, libc::EPERM, "", &admin).contains("seccomp"), "SYS_ADMIN stands for both");
    }

    #[test]
    fn who_has_them_is_told_what_else_stands_in_the_way() {
        let filtered = place("6.1.0", "CapEff:\t000001ffffffffff\nSeccomp:\t2\n");
        assert!(why(Step::Memory, libc::EPERM, "", &filtered).contains("filter of system calls"));
        let rootless = Place { uid_map: "0 1000 1\n".into(), ..place("6.1.0", ROOT) };
        assert!(why(Step::Memory, libc::EPERM, "", &rootless).contains("user namespace"));
        let locked = Place { lockdown: "none integrity [confidentiality]\n".into(), ..place("6.1.0", ROOT) };
        assert!(why(Step::Program, libc::EPERM, "", &locked).contains("locked down"));
        assert!(why(Step::Program, libc::EPERM, "", &place("6.1.0", ROOT)).contains("security module"));
        assert!(why(Step::Memory, libc::ENOSYS, "", &place("6.1.0", ROOT)).contains("CONFIG_BPF_SYSCALL"));
    }

    #[test]
    fn a_kernel_that_is_too_old_is_told_from_a_program_that_is_refused() {
        // The kernel's message for a missing helper: EINVAL for any helper.
        let said =
            "0: (85) call unknown#9999\ninvalid func unknown#9999\nprocessed 1 insns (limit 1000000)\n";
        for release in ["5.16.20", "5.10.0-28-amd64", "4.19.0"] {
            let said = why(Step::Program, libc::EINVAL, said, &place(release, ROOT));
            assert!(said.ends_with(&[release, " has no bpf_loop; it came with 5.17"].concat()), "{said}");
        }
        for release in ["5.17.0", "6.1.0-56-rt-amd64", "10.0", ""] {
            let said = why(Step::Program, libc::EINVAL, said, &place(release, ROOT));
            assert!(said.ends_with("): invalid func unknown#9999"), "{said}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_a_kernel_says_is_too_strange(release in ".{0,20}", status in "(.|\n){0,60}", said in "(.|\n){0,60}") {
            let strange = Place { uid_map: status.clone(), ..place(&release, &status) };
            let _ = why(Step::Program, libc::EINVAL, &said, &strange);
            let _ = why(Step::Program, libc::EPERM, &said, &strange);
        }
    }
}
