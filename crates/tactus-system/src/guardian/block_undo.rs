//! What a `block` changes of this machine's kernel, as promises that it is taken back should the probe
//! that injects it not live to do so. A guest's own kernel ends with the guest.

use std::path::Path;

use tactus_model::activity::{BlockWay, Fault};
use tactus_model::undo::Undo;

use crate::System;

/// Where tracefs may be mounted.
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The tracers' instances, as the probe names them.
const INSTANCES: [&str; 2] = ["instances/tactus-hwlat", "instances/tactus-osnoise"];
/// Times of which the first must never be above the second.
const PAIRS: [[&str; 2]; 2] =
    [["hwlat_detector/width", "hwlat_detector/window"], ["osnoise/runtime_us", "osnoise/period_us"]];
/// Other values that are common to all instances.
const VALUES: [&str; 3] = ["osnoise/cpus", "osnoise/stop_tracing_us", "osnoise/stop_tracing_total_us"];
const OPTIONS: [&str; 3] = ["OSNOISE_IRQ_DISABLE", "OSNOISE_PREEMPT_DISABLE", "OSNOISE_WORKLOAD"];
const MODULE: &str = "preemptirq_delay_test";

/// How a fault is taken back, in the order in which it is promised: the last is taken back first.
#[must_use]
pub fn block_undos(fault: &Fault, system: &dyn System) -> Vec<Undo> {
    let Fault::Block(block) = fault else { return Vec::new() };
    let mut undos = Vec::new();
    let by_module = block.way.is_none_or(|way| way == BlockWay::PreemptirqDelay);
    if by_module && !system.exists(&Path::new("/sys/module").join(MODULE)) {
        undos.push(Undo::Run(["modprobe", "-r", MODULE].map(str::to_owned).into()));
    }
    let mounted = |root: &&str| system.text(&format!("{root}/available_tracers")).is_some();
    let Some(root) = ROOTS.into_iter().find(mounted) else { return undos };
    let root = Path::new(root);
    let text = |file: &str| Some(system.text(root.join(file).to_str()?)?.trim().to_owned());
    let write = |file: &str, value: String| Undo::Write { path: root.join(file), value };
    for [inner, outer] in PAIRS {
        if let (Some(was_inner), Some(was_outer)) = (text(inner), text(outer)) {
            undos.extend([write(inner, was_inner), write(outer, was_outer), write(inner, "1".into())]);
        }
    }
    undos.extend(VALUES.into_iter().filter_map(|file| Some(write(file, text(file)?))));
    let options = text("osnoise/options").unwrap_or_default();
    let present = |word: &&str| OPTIONS.contains(&word.strip_prefix("NO_").unwrap_or(word));
    undos.extend(
        options.split_whitespace().filter(present).map(|word| write("osnoise/options", word.to_owned())),
    );
    let mode = text("hwlat_detector/mode").unwrap_or_default();
    if let Some(mode) = mode.split(['[', ']']).nth(1) {
        undos.push(write("hwlat_detector/mode", mode.to_owned()));
    }
    undos.extend(INSTANCES.into_iter().map(|instance| Undo::RemoveEmpty(root.join(instance))));
    undos
}

#[cfg(test)]
mod tests {
    use tactus_model::Nanos;
    use tactus_model::activity::{Block, Hog};

    use super::*;
    use crate::Memory;

    fn block(way: Option<BlockWay>) -> Fault {
        let (length, every) = (Nanos::from_ms(4), Nanos::from_ms(100));
        Fault::Block(Block { length, every, emulated: None, off: None, way })
    }

    fn words(undos: &[Undo]) -> Vec<String> {
        undos.iter().rev().map(|undo| format!("{undo:?}").replace("/sys/kernel/tracing/", "")).collect()
    }

    #[test]
    fn what_a_tracer_changes_is_written_back_after_its_instance_is_gone() {
        let machine = Memory::new()
            .file("/sys/kernel/tracing/available_tracers", "hwlat osnoise nop\n")
            .file("/sys/kernel/tracing/hwlat_detector/mode", "none [round-robin] per-cpu\n")
            .file("/sys/kernel/tracing/hwlat_detector/width", "500000\n")
            .file("/sys/kernel/tracing/hwlat_detector/window", "1000000\n")
            .file("/sys/kernel/tracing/osnoise/options", "DEFAULTS OSNOISE_WORKLOAD NO_OSNOISE_IRQ_DISABLE\n")
            .file("/sys/kernel/tracing/osnoise/cpus", "0-7\n");
        let words = words(&block_undos(&block(Some(BlockWay::Hwlat)), &machine));
        let expected = [
            r#"RemoveEmpty("instances/tactus-osnoise")"#,
            r#"RemoveEmpty("instances/tactus-hwlat")"#,
            r#"Write { path: "hwlat_detector/mode", value: "round-robin" }"#,
            r#"Write { path: "osnoise/options", value: "NO_OSNOISE_IRQ_DISABLE" }"#,
            r#"Write { path: "osnoise/options", value: "OSNOISE_WORKLOAD" }"#,
            r#"Write { path: "osnoise/cpus", value: "0-7" }"#,
            r#"Write { path: "hwlat_detector/width", value: "1" }"#,
            r#"Write { path: "hwlat_detector/window", value: "1000000" }"#,
            r#"Write { path: "hwlat_detector/width", value: "500000" }"#,
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_kernel_without_tracers_has_only_its_module_to_unload() {
        let undos = |fault: &Fault| words(&block_undos(fault, &Memory::new()));
        assert_eq!(undos(&block(None)), [r#"Run(["modprobe", "-r", "preemptirq_delay_test"])"#]);
        assert!(undos(&block(Some(BlockWay::Osnoise))).is_empty());
        assert!(undos(&Fault::Hog(Hog { length: Nanos(1), every: Nanos(9) })).is_empty());
    }
}
