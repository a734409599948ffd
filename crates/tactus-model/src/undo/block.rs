//! What a `block` changes of a kernel that goes on without it, and how that is put back should the probe
//! that injects it not live to do so. A guest's own kernel ends with the guest.

use std::path::Path;

use super::Undo;
use crate::catalogue::Fault;
use crate::catalogue::fault::BlockWay;

/// Where tracefs may be mounted; a probe mounts it at the first.
pub const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The kernel's own test module that blocks.
pub const MODULE: &str = "preemptirq_delay_test";
/// What tells that it is loaded, and with what, each in a file.
pub const PARAMETERS: &str = "/sys/module/preemptirq_delay_test/parameters/";
/// Options of osnoise that a block sets, by what they do.
pub const IRQ_DISABLE: &str = "OSNOISE_IRQ_DISABLE";
/// See [`IRQ_DISABLE`].
pub const PREEMPT_DISABLE: &str = "OSNOISE_PREEMPT_DISABLE";
/// See [`IRQ_DISABLE`].
pub const WORKLOAD: &str = "OSNOISE_WORKLOAD";

/// A file of tracefs that all instances share. A block changes those that are named here, and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared(&'static str);

impl Shared {
    /// How hwlat goes from CPU to CPU.
    pub const MODE: Self = Self("hwlat_detector/mode");
    /// For how long hwlat blocks, in us.
    pub const WIDTH: Self = Self("hwlat_detector/width");
    /// How often hwlat blocks, in us.
    pub const WINDOW: Self = Self("hwlat_detector/window");
    /// For how long osnoise blocks, in us.
    pub const RUNTIME: Self = Self("osnoise/runtime_us");
    /// How often osnoise blocks, in us.
    pub const PERIOD: Self = Self("osnoise/period_us");
    /// Where osnoise runs.
    pub const CPUS: Self = Self("osnoise/cpus");
    /// Limits at which osnoise stops.
    pub const STOPS: [Self; 2] = [Self("osnoise/stop_tracing_us"), Self("osnoise/stop_tracing_total_us")];
    /// What osnoise does.
    pub const OPTIONS: Self = Self("osnoise/options");

    /// Its path below the root of tracefs.
    #[must_use]
    pub const fn path(self) -> &'static str {
        self.0
    }
}

/// A tracer of the kernel that blocks.
#[derive(Clone, Copy, Debug)]
pub struct Tracer {
    /// Its name.
    pub name: &'static str,
    /// The instance of tracefs that it runs in, below the root.
    pub instance: &'static str,
    /// What its threads are called before the number of their CPU.
    pub threads: &'static str,
    /// For how long it blocks, which must never be above the second: how often.
    pub times: [Shared; 2],
}

/// Looks for what firmware takes from a CPU.
pub const HWLAT: Tracer = Tracer {
    name: "hwlat",
    instance: "instances/tactus-hwlat",
    threads: "hwlatd/",
    times: [Shared::WIDTH, Shared::WINDOW],
};
/// Looks for whatever takes time from a CPU.
pub const OSNOISE: Tracer = Tracer {
    name: "osnoise",
    instance: "instances/tactus-osnoise",
    threads: "osnoise/",
    times: [Shared::RUNTIME, Shared::PERIOD],
};

/// How the module is unloaded.
#[must_use]
pub fn unload() -> Undo {
    Undo::Run(["modprobe", "-r", MODULE].map(str::to_owned).into())
}

/// The mode of hwlat that is on, of what [`Shared::MODE`] says: the one in brackets.
#[must_use]
pub fn mode(modes: &str) -> Option<&str> {
    modes.split(['[', ']']).nth(1)
}

/// How a fault is taken back, in the order in which it is promised: the last is taken back first. `read`
/// is what a file of that kernel says.
#[must_use]
pub fn undos(fault: &Fault, read: impl Fn(&str) -> Option<String>) -> Vec<Undo> {
    let Fault::Block(block) = fault else { return Vec::new() };
    let mut undos = Vec::new();
    let by_module = block.way.is_none_or(|way| way == BlockWay::PreemptirqDelay);
    if by_module && read(&[PARAMETERS, "delay"].concat()).is_none() {
        undos.push(unload());
    }
    let Some(root) = ROOTS.into_iter().find(|root| read(&[root, "/available_tracers"].concat()).is_some())
    else {
        return undos;
    };
    let path = |file: &str| Path::new(root).join(file);
    let text = |file: Shared| Some(read(&[root, "/", file.path()].concat())?.trim().to_owned());
    let write = |file: Shared, value: String| Undo::Write { path: path(file.path()), value };
    for [inner, outer] in [HWLAT.times, OSNOISE.times] {
        if let (Some(was_inner), Some(was_outer)) = (text(inner), text(outer)) {
            undos.extend([write(inner, was_inner), write(outer, was_outer), write(inner, "1".into())]);
        }
    }
    let [stop, stop_total] = Shared::STOPS;
    let values = [Shared::CPUS, stop, stop_total].into_iter();
    undos.extend(values.filter_map(|file| Some(write(file, text(file)?))));
    let options = text(Shared::OPTIONS).unwrap_or_default();
    let ours = [IRQ_DISABLE, PREEMPT_DISABLE, WORKLOAD];
    let is_ours = |word: &&str| ours.contains(&word.strip_prefix("NO_").unwrap_or(word));
    let options = options.split_whitespace().filter(is_ours);
    undos.extend(options.map(|word| write(Shared::OPTIONS, word.to_owned())));
    if let Some(mode) = mode(&text(Shared::MODE).unwrap_or_default()) {
        undos.push(write(Shared::MODE, mode.to_owned()));
    }
    undos.extend([HWLAT, OSNOISE].map(|tracer| Undo::RemoveEmpty(path(tracer.instance))));
    undos
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Nanos;
    use crate::catalogue::fault::{Block, Hog};

    fn block(way: Option<BlockWay>) -> Fault {
        let (length, every) = (Nanos::from_ms(4), Nanos::from_ms(100));
        Fault::Block(Block { length, every, emulated: None, off: None, way })
    }

    /// In the order in which they are taken back.
    fn words(fault: &Fault, files: &[(&str, &str)]) -> Vec<String> {
        let files: BTreeMap<String, &str> =
            files.iter().map(|(file, text)| (format!("/sys/kernel/tracing/{file}"), *text)).collect();
        let undos = undos(fault, |path| files.get(path).map(|text| (*text).to_owned()));
        undos.iter().rev().map(|undo| undo.to_string().replace("/sys/kernel/tracing/", "")).collect()
    }

    #[test]
    fn what_a_tracer_changes_is_written_back_after_its_instance_is_gone() {
        let files = [
            ("available_tracers", "hwlat osnoise nop\n"),
            ("hwlat_detector/mode", "none [round-robin] per-cpu\n"),
            ("hwlat_detector/width", "500000\n"),
            ("hwlat_detector/window", "1000000\n"),
            ("osnoise/options", "DEFAULTS OSNOISE_WORKLOAD NO_OSNOISE_IRQ_DISABLE\n"),
            ("osnoise/cpus", "0-7\n"),
        ];
        let expected = [
            "removing the empty directory instances/tactus-osnoise",
            "removing the empty directory instances/tactus-hwlat",
            "writing `round-robin` back to hwlat_detector/mode",
            "writing `NO_OSNOISE_IRQ_DISABLE` back to osnoise/options",
            "writing `OSNOISE_WORKLOAD` back to osnoise/options",
            "writing `0-7` back to osnoise/cpus",
            "writing `1` back to hwlat_detector/width",
            "writing `1000000` back to hwlat_detector/window",
            "writing `500000` back to hwlat_detector/width",
        ];
        assert_eq!(words(&block(Some(BlockWay::Hwlat)), &files), expected);
    }

    #[test]
    fn a_kernel_without_tracers_has_only_its_module_to_unload() {
        assert_eq!(words(&block(None), &[]), ["running `modprobe -r preemptirq_delay_test`"]);
        assert!(words(&block(Some(BlockWay::Osnoise)), &[]).is_empty());
        assert!(words(&Fault::Hog(Hog { length: Nanos(1), every: Nanos(9) }), &[]).is_empty());
    }

    #[test]
    fn a_module_that_somebody_else_has_loaded_is_left() {
        let loaded = [PARAMETERS, "delay"].concat();
        assert!(undos(&block(None), |path| (path == loaded).then(String::new)).is_empty());
    }

    #[test]
    fn every_file_that_all_instances_share_is_written_back() {
        let undos = undos(&block(None), |path| {
            let is_module = path.starts_with(PARAMETERS);
            (!is_module).then(|| format!("[1] {IRQ_DISABLE}"))
        });
        let [stop, stop_total] = Shared::STOPS;
        for file in [
            Shared::MODE,
            Shared::WIDTH,
            Shared::WINDOW,
            Shared::RUNTIME,
            Shared::PERIOD,
            Shared::CPUS,
            stop,
            stop_total,
            Shared::OPTIONS,
        ] {
            let is_written =
                |how: &Undo| matches!(how, Undo::Write { path, .. } if path.ends_with(file.path()));
            assert!(undos.iter().any(is_written), "{file:?}");
        }
    }
}
