//! What a `block` changes of a kernel that goes on without it, and how that is put back should the probe
//! that injects it not live to do so. A guest's own kernel ends with the guest.

use std::path::Path;

use super::{Tool, Undo};
use crate::catalogue::Fault;
use crate::catalogue::fault::BlockWay;

/// Where tracefs may be mounted; a probe mounts it at the first.
pub const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
pub use super::tool::BLOCK_MODULE as MODULE;
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
    /// How the instance of tracefs is called that it runs in, below the root; the run's id follows.
    instance: &'static str,
    /// What its threads are called before the number of their CPU.
    pub threads: &'static str,
    /// For how long it blocks, which must never be above the second: how often.
    pub times: [Shared; 2],
}

impl Tracer {
    /// The instance of tracefs that a run has it in, below the root: no other run's, so that what is taken back
    /// is what this one made. A run without an id is a guest's only one.
    #[must_use]
    pub fn instance(&self, run: &str) -> String {
        if run.is_empty() { self.instance.to_owned() } else { [self.instance, "-", run].concat() }
    }

    /// Whether a directory among the instances is one that a block has made, whichever run's.
    #[must_use]
    pub fn is_ours(&self, name: &str) -> bool {
        self.instance.strip_prefix("instances/").is_some_and(|own| name.starts_with(own))
    }
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
    Undo::Tool(Tool::BlockModule)
}

/// The mode of hwlat that is on, of what [`Shared::MODE`] says: the one in brackets.
#[must_use]
pub fn mode(modes: &str) -> Option<&str> {
    modes.split(['[', ']']).nth(1)
}

/// How a run takes a fault back, in the order in which it is promised: the last is taken back first. `read`
/// is what a file of that kernel says. What is not there at that time was not made, and nothing is then
/// written: by a BPF program nothing is changed, and another run's block is none of ours.
#[must_use]
pub fn undos(fault: &Fault, run: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Undo> {
    let Fault::Block(block) = fault else { return Vec::new() };
    let by = |way| block.way.is_none_or(|only| only == way);
    let mut undos = Vec::new();
    let loaded = [PARAMETERS, "delay"].concat();
    if by(BlockWay::PreemptirqDelay) && read(&loaded).is_none() {
        undos.push(Undo::Where { there: loaded.into(), then: vec![unload()] });
    }
    let Some(root) = ROOTS.into_iter().find(|root| read(&[root, "/available_tracers"].concat()).is_some())
    else {
        return undos;
    };
    let text = |file: Shared| Some(read(&[root, "/", file.path()].concat())?.trim().to_owned());
    for (way, tracer, values) in
        [(BlockWay::Hwlat, HWLAT, hwlat(&text)), (BlockWay::Osnoise, OSNOISE, osnoise(&text))]
    {
        if by(way) {
            let instance = Path::new(root).join(tracer.instance(run));
            let current = instance.join("current_tracer");
            // What it shows goes last: whoever begins again finds what is left.
            let mut then = vec![Undo::Write { path: current.clone(), value: "nop".into() }];
            let values = values.into_iter().chain(times(tracer.times, &text));
            then.extend(
                values.map(|(file, value)| Undo::Write { path: Path::new(root).join(file.path()), value }),
            );
            then.push(Undo::RemoveEmpty(instance));
            undos.push(Undo::Where { there: current, then });
        }
    }
    undos
}

/// Former values, in the order in which they are written.
type Values = Vec<(Shared, String)>;

fn hwlat(text: &impl Fn(Shared) -> Option<String>) -> Values {
    let modes = text(Shared::MODE).unwrap_or_default();
    mode(&modes).map(|mode| (Shared::MODE, mode.to_owned())).into_iter().collect()
}

fn osnoise(text: &impl Fn(Shared) -> Option<String>) -> Values {
    let [stop, stop_total] = Shared::STOPS;
    let options = text(Shared::OPTIONS).unwrap_or_default();
    let ours = [IRQ_DISABLE, PREEMPT_DISABLE, WORKLOAD];
    let is_ours = |word: &&str| ours.contains(&word.strip_prefix("NO_").unwrap_or(word));
    let options = options.split_whitespace().filter(is_ours).map(|word| (Shared::OPTIONS, word.to_owned()));
    let plain = [Shared::CPUS, stop, stop_total].into_iter();
    options.chain(plain.filter_map(|file| Some((file, text(file)?)))).collect()
}

/// How long and how often, of which the first must never be above the second.
fn times([inner, outer]: [Shared; 2], text: &impl Fn(Shared) -> Option<String>) -> Values {
    match (text(inner), text(outer)) {
        (Some(was_inner), Some(was_outer)) => {
            vec![(inner, "1".to_owned()), (outer, was_outer), (inner, was_inner)]
        }
        _ => Vec::new(),
    }
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

    const RUN: &str = "r7";

    /// What is taken back, and what must be there for it.
    fn words(fault: &Fault, files: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
        let files: BTreeMap<String, &str> =
            files.iter().map(|(file, text)| (format!("/sys/kernel/tracing/{file}"), *text)).collect();
        let undos = undos(fault, RUN, |path| files.get(path).map(|text| (*text).to_owned()));
        let short = |words: String| words.replace("/sys/kernel/tracing/", "");
        let parts = |undo: Undo| match undo {
            Undo::Where { there, then } => (
                short(there.display().to_string()),
                then.into_iter().map(|undo| short(undo.to_string())).collect(),
            ),
            other => panic!("{other} whatever is there"),
        };
        undos.into_iter().map(parts).collect()
    }

    const FILES: [(&str, &str); 6] = [
        ("available_tracers", "hwlat osnoise nop\n"),
        ("hwlat_detector/mode", "none [round-robin] per-cpu\n"),
        ("hwlat_detector/width", "500000\n"),
        ("hwlat_detector/window", "1000000\n"),
        ("osnoise/options", "DEFAULTS OSNOISE_WORKLOAD NO_OSNOISE_IRQ_DISABLE\n"),
        ("osnoise/cpus", "0-7\n"),
    ];

    #[test]
    fn what_a_tracer_changes_is_written_back_before_the_runs_own_instance_goes() {
        let [_, (hwlat, of_hwlat), (osnoise, of_osnoise)] = &words(&block(None), &FILES)[..] else {
            panic!()
        };
        assert_eq!(hwlat, "instances/tactus-hwlat-r7/current_tracer");
        assert_eq!(osnoise, "instances/tactus-osnoise-r7/current_tracer");
        assert_eq!(
            *of_hwlat,
            [
                "writing `nop` back to instances/tactus-hwlat-r7/current_tracer",
                "writing `round-robin` back to hwlat_detector/mode",
                "writing `1` back to hwlat_detector/width",
                "writing `1000000` back to hwlat_detector/window",
                "writing `500000` back to hwlat_detector/width",
                "removing the empty directory instances/tactus-hwlat-r7",
            ]
        );
        assert_eq!(
            *of_osnoise,
            [
                "writing `nop` back to instances/tactus-osnoise-r7/current_tracer",
                "writing `OSNOISE_WORKLOAD` back to osnoise/options",
                "writing `NO_OSNOISE_IRQ_DISABLE` back to osnoise/options",
                "writing `0-7` back to osnoise/cpus",
                "removing the empty directory instances/tactus-osnoise-r7",
            ]
        );
    }

    #[test]
    fn only_what_the_plan_lets_block_is_taken_back() {
        let there =
            |way| words(&block(Some(way)), &FILES).into_iter().map(|(there, _)| there).collect::<Vec<_>>();
        assert_eq!(there(BlockWay::Bpf), [""; 0], "it changes nothing");
        assert_eq!(there(BlockWay::Blocksys), [""; 0]);
        assert_eq!(there(BlockWay::Hwlat), ["instances/tactus-hwlat-r7/current_tracer"]);
        assert_eq!(there(BlockWay::PreemptirqDelay), [[PARAMETERS, "delay"].concat()]);
        assert!(words(&Fault::Hog(Hog { length: Nanos(1), every: Nanos(9) }), &FILES).is_empty());
    }

    #[test]
    fn a_module_that_somebody_else_has_loaded_is_left() {
        let loaded = [PARAMETERS, "delay"].concat();
        assert!(undos(&block(None), RUN, |path| (path == loaded).then(String::new)).is_empty());
    }

    #[test]
    fn an_instance_is_known_as_a_blocks_whichever_runs_it_is() {
        assert_eq!(HWLAT.instance(""), "instances/tactus-hwlat");
        assert!(
            HWLAT.is_ours("tactus-hwlat")
                && HWLAT.is_ours("tactus-hwlat-r8")
                && !HWLAT.is_ours("tactus-osnoise")
        );
    }

    #[test]
    fn every_file_that_all_instances_share_is_written_back() {
        let undos = undos(&block(None), RUN, |path| {
            let is_module = path.starts_with(PARAMETERS);
            (!is_module).then(|| format!("[1] {IRQ_DISABLE}"))
        });
        let written: Vec<&Undo> = undos
            .iter()
            .flat_map(|undo| if let Undo::Where { then, .. } = undo { &then[..] } else { &[] })
            .collect();
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
                |how: &&Undo| matches!(how, Undo::Write { path, .. } if path.ends_with(file.path()));
            assert!(written.iter().any(is_written), "{file:?}");
        }
    }
}
