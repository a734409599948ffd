//! The facts of this system: what `tactus-facts` reads, and how fast the processor's own clock runs.

use tactus_facts::{CPUINFO, Door};
use tactus_measure::clock::{Pair, Scale, is_even};
use tactus_measure::thread::allowed;
use tactus_model::facts::Facts;

use crate::sys;

/// Reads everything.
pub fn collect() -> Facts {
    let cpuinfo = std::fs::read_to_string(CPUINFO);
    let even = cpuinfo.as_ref().is_ok_and(|text| is_even(std::env::consts::ARCH, text));
    // The clocks are compared over the time that reading takes.
    let began = even.then(Pair::read);
    let door = Door {
        affinity: sys::affinity_mask,
        kernel_log: sys::kernel_log,
        cpuid: sys::cpuid_leaves,
        allowed: allowed().clone(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let mut facts = tactus_facts::collect(&door, cpuinfo);
    if let Some(hertz) = began.and_then(|began| began.to(Pair::read())).map(Scale::hertz) {
        facts.keep("cpu:tsc_hz", hertz.to_string());
    }
    facts
}

#[cfg(test)]
mod tests {
    use tactus_model::facts::Reading;
    use tactus_model::interrupts::Interrupts;
    use tactus_model::threads::Threads;
    use tactus_model::topology::Topology;

    use super::*;

    #[test]
    fn one_pass_finds_what_the_run_needs() {
        let facts = collect();
        for name in [
            "/proc/cmdline",
            "/proc/cpuinfo",
            "/sys/devices/system/cpu/online",
            "uname:release",
            "sched:affinity",
        ] {
            assert!(facts.text(name).is_some_and(|text| !text.is_empty()), "{name}");
        }
        assert!(!Topology::of(&facts).measuring().is_empty());
        assert!(Interrupts::of(&facts).known);
    }

    #[test]
    fn absence_is_recorded_where_it_says_something() {
        let facts = collect();
        assert!(tactus_facts::FILES.iter().all(|path| facts.0.contains_key(*path)));
        for name in ["config:source", "dmesg:start", "container:kind", "threads:0", "program:irqbalance"] {
            assert!(facts.0.contains_key(name), "{name}");
        }
    }

    #[test]
    fn the_probe_finds_its_own_thread_and_every_line_can_be_read() {
        let threads = Threads::of(&collect());
        let own = threads.get(std::process::id()).expect("this process's first thread");
        assert!(!own.kernel && own.pid == std::process::id() && !own.cpus.is_empty());
        assert_eq!(threads.damaged, 0);
    }

    #[test]
    fn what_is_split_into_parts_is_never_cut() {
        for (name, reading) in collect().0 {
            if ["threads:", "interrupts:", "config:", "msr:", "cpuid:"]
                .iter()
                .any(|word| name.starts_with(word))
            {
                assert!(!matches!(reading, Reading::Cut(_)), "{name}");
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_processor_answers_for_its_basic_leaf() {
        let facts = collect();
        let one = facts.text("cpuid:0x1:0").unwrap();
        assert!(one.starts_with("eax=0x") && one.contains(" ecx=0x"), "{one}");
    }
}
