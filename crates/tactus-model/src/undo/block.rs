//! The changes that `block` and `timerlat` make to a kernel that stays when they end, and how they are reverted if
//! their probe dies first. A guest's kernel ends with the guest.

use std::path::Path;

use super::{Tool, Undo};
use crate::catalogue::Fault;
use crate::catalogue::fault::BlockWay;

/// The possible mount points of tracefs; a probe mounts it at the first.
pub const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
pub use super::tool::BLOCK_MODULE as MODULE;
/// The directory that shows that it is loaded, with a file for each parameter.
pub const PARAMETERS: &str = "/sys/module/preemptirq_delay_test/parameters/";
/// Options of osnoise that a block sets, named by their effect.
pub const IRQ_DISABLE: &str = "OSNOISE_IRQ_DISABLE";
/// See [`IRQ_DISABLE`].
pub const PREEMPT_DISABLE: &str = "OSNOISE_PREEMPT_DISABLE";
/// See [`IRQ_DISABLE`].
pub const WORKLOAD: &str = "OSNOISE_WORKLOAD";

/// A file of tracefs that all instances share. Only the files listed here are changed.
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
    /// How often timerlat arms its timer, in us.
    pub const TIMERLAT_PERIOD: Self = Self("osnoise/timerlat_period_us");
    /// The CPUs of osnoise and timerlat.
    pub const CPUS: Self = Self("osnoise/cpus");
    /// Limits at which osnoise and timerlat stop.
    pub const STOPS: [Self; 2] = [Self("osnoise/stop_tracing_us"), Self("osnoise/stop_tracing_total_us")];
    /// The options of osnoise.
    pub const OPTIONS: Self = Self("osnoise/options");

    /// Its path below the root of tracefs.
    #[must_use]
    pub const fn path(self) -> &'static str {
        self.0
    }
}

/// A tracer of the kernel that blocks, or measures.
#[derive(Clone, Copy, Debug)]
pub struct Tracer {
    /// Its name.
    pub name: &'static str,
    /// Name of its instance of tracefs, below the root; the run's id follows.
    instance: &'static str,
    /// Name of its threads, before the number of their CPU.
    pub threads: &'static str,
}

impl Tracer {
    /// The instance of tracefs that a run uses, below the root. No other run uses it, so that reverting only affects
    /// this run's changes. A run without an id is the only one of its guest.
    #[must_use]
    pub fn instance(&self, run: &str) -> String {
        if run.is_empty() { self.instance.to_owned() } else { [self.instance, "-", run].concat() }
    }

    /// Whether a directory among the instances is one that has been made for it here, whichever run's.
    #[must_use]
    pub fn is_ours(&self, name: &str) -> bool {
        self.instance.strip_prefix("instances/").is_some_and(|own| name.starts_with(own))
    }

    /// The undo that ends it and removes its instance, after these values are restored. The instance, which shows that
    /// the tracer is there, is removed last: a repeated undo then finds the rest.
    fn undo(&self, root: &str, run: &str, values: Values) -> Undo {
        let instance = Path::new(root).join(self.instance(run));
        let current = instance.join("current_tracer");
        let mut then = vec![Undo::Write { path: current.clone(), value: "nop".into() }];
        then.extend(
            values
                .into_iter()
                .map(|(file, value)| Undo::Write { path: Path::new(root).join(file.path()), value }),
        );
        then.push(Undo::RemoveEmpty(instance));
        Undo::Where { there: current, then }
    }
}

/// Looks for what firmware takes from a CPU.
pub const HWLAT: Tracer = Tracer { name: "hwlat", instance: "instances/tactus-hwlat", threads: "hwlatd/" };
/// For how long hwlat blocks, which must never be above the second: how often.
pub const HWLAT_TIMES: [Shared; 2] = [Shared::WIDTH, Shared::WINDOW];
/// Looks for whatever takes time from a CPU.
pub const OSNOISE: Tracer =
    Tracer { name: "osnoise", instance: "instances/tactus-osnoise", threads: "osnoise/" };
/// The same of osnoise.
pub const OSNOISE_TIMES: [Shared; 2] = [Shared::RUNTIME, Shared::PERIOD];
/// Measures how late timers are.
pub const TIMERLAT: Tracer =
    Tracer { name: "timerlat", instance: "instances/tactus-timerlat", threads: "timerlat/" };

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

/// The undos of a fault, in the order in which they are promised: the last is undone first. `read` returns the text of
/// a file of that kernel. A change whose trace is missing was not made, and is not written back: a BPF program changes
/// nothing, and another run's block must stay.
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
    let (hwlat, osnoise) = (hwlat(&text), osnoise(&text));
    for (way, tracer, values, own) in
        [(BlockWay::Hwlat, HWLAT, hwlat, HWLAT_TIMES), (BlockWay::Osnoise, OSNOISE, osnoise, OSNOISE_TIMES)]
    {
        if by(way) {
            undos.push(tracer.undo(root, run, values.into_iter().chain(times(own, &text)).collect()));
        }
    }
    undos
}

/// The undo of the settings of `timerlat`, which is the only user of the tracer where it was begun. `read` returns the
/// text of a file of that kernel. Nothing is written if its instance does not exist.
#[must_use]
pub fn undo_of_timerlat(run: &str, read: impl Fn(&str) -> Option<String>) -> Option<Undo> {
    let root = ROOTS.into_iter().find(|root| read(&[root, "/available_tracers"].concat()).is_some())?;
    let text = |file: Shared| Some(read(&[root, "/", file.path()].concat())?.trim().to_owned());
    let period = text(Shared::TIMERLAT_PERIOD).map(|period| (Shared::TIMERLAT_PERIOD, period));
    Some(TIMERLAT.undo(root, run, osnoise(&text).into_iter().chain(period).collect()))
}

/// The instance of tracefs, below its root, in which a run records who had the CPU. No other run uses it. A run without
/// an id is the only one of its guest.
#[must_use]
pub fn blame_instance(run: &str) -> String {
    const OWN: &str = "instances/tactus-blame";
    if run.is_empty() { OWN.to_owned() } else { [OWN, "-", run].concat() }
}

/// The undo that removes that instance, and with it its events; `None`: no tracefs to make one in.
#[must_use]
pub fn undo_of_blame(run: &str, read: impl Fn(&str) -> Option<String>) -> Option<Undo> {
    let root = ROOTS.into_iter().find(|root| read(&[root, "/available_tracers"].concat()).is_some())?;
    Some(Undo::RemoveEmpty(Path::new(root).join(blame_instance(run))))
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

    /// The undos, and the file that must exist for each.
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
    fn what_timerlat_sets_for_the_whole_machine_is_written_back_where_its_instance_is_there() {
        let read = |files: &'static [(&'static str, &'static str)]| {
            move |path: &str| {
                let file = path.strip_prefix("/sys/kernel/tracing/")?;
                files.iter().find(|(name, _)| *name == file).map(|(_, text)| (*text).to_owned())
            }
        };
        let undo = undo_of_timerlat(
            RUN,
            read(&[
                ("available_tracers", "timerlat osnoise nop\n"),
                ("osnoise/options", "DEFAULTS NO_OSNOISE_WORKLOAD\n"),
                ("osnoise/cpus", "0-7\n"),
                ("osnoise/stop_tracing_us", "20\n"),
                ("osnoise/stop_tracing_total_us", "30\n"),
                ("osnoise/timerlat_period_us", "1000\n"),
            ]),
        );
        let Some(Undo::Where { there, then }) = undo else { panic!("{undo:?}") };
        let short = |words: String| words.replace("/sys/kernel/tracing/", "");
        assert_eq!(
            short(there.display().to_string()),
            "instances/tactus-timerlat-r7/current_tracer",
            "another run's is none of ours"
        );
        assert_eq!(
            then.into_iter().map(|undo| short(undo.to_string())).collect::<Vec<_>>(),
            [
                "writing `nop` back to instances/tactus-timerlat-r7/current_tracer",
                "writing `NO_OSNOISE_WORKLOAD` back to osnoise/options",
                "writing `0-7` back to osnoise/cpus",
                "writing `20` back to osnoise/stop_tracing_us",
                "writing `30` back to osnoise/stop_tracing_total_us",
                "writing `1000` back to osnoise/timerlat_period_us",
                "removing the empty directory instances/tactus-timerlat-r7",
            ]
        );
        assert_eq!(undo_of_timerlat(RUN, |_| None), None, "without tracefs nothing is made");
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
