//! `block`: interrupts or preemption are off for a known time. Only the kernel can do that. The first way that works is
//! used, or the one that the plan names.

mod blocksys;
mod bpf;
mod delay;
mod tracer;

use std::time::{Duration, Instant};

use tactus_model::CpuSet;
use tactus_model::catalogue::fault::{Block, BlockWay, Off};
use tactus_model::message::Refusal;
use tactus_model::undo::{Undo, undo};

use super::{Disturbance, Rhythm, refused, size};
use crate::actions::LocalSystem;
use crate::tracer::{NotToBeHad, tracers};

/// The shortest pause between two blocks, in ns: the tracers know none that is shorter.
const PAUSE_NS: u64 = 1_000_000;
/// How long a way that another process uses is tried again, and the time between two tries. A try may take 3 s, and the session
/// waits for 10 s.
const BUSY: Duration = Duration::from_secs(6);
const AGAIN: Duration = Duration::from_millis(100);

/// A block to be prepared.
struct Wanted<'a> {
    /// How long each, in ns.
    length: u64,
    /// How often, in ns.
    every: u64,
    off: Off,
    cpus: &'a CpuSet,
    /// A priority above the measuring threads.
    above: u32,
    /// When, where this process says so.
    rhythm: Rhythm,
}

/// Why a way cannot be gone.
#[derive(Debug)]
struct No {
    /// In words.
    why: String,
    /// It may work later: another process uses it now.
    busy: bool,
    /// A hint that would help.
    hint: Option<&'static str>,
}

impl From<String> for No {
    fn from(why: String) -> Self {
        Self { why, busy: false, hint: None }
    }
}

impl From<NotToBeHad> for No {
    fn from(NotToBeHad { why, busy }: NotToBeHad) -> Self {
        Self { why, busy, hint: None }
    }
}

/// A way that cannot be gone, for a reason in parts: texts are joined in less space than they are
/// formatted.
#[cold]
fn no<T>(busy: bool, why: &[&str]) -> Result<T, No> {
    Err(No { why: why.concat(), busy, hint: None })
}

pub fn prepare(table: &Block, cpus: &CpuSet, above: u32, rhythm: Rhythm) -> Result<Disturbance, Refusal> {
    let (length, every) = size(Block::NAME, (table.length, table.every), 1)?;
    if every - length < PAUSE_NS {
        return Err(refused(
            format!("block: the pause between blocks of {} every {} is too short", table.length, table.every),
            "leave at least 1ms between two blocks",
        ));
    }
    let wanted = Wanted { length, every, off: table.off(), cpus, above, rhythm };
    patiently(BUSY, || by_some_way(&wanted, table)).map_err(|no| refusal(&no))
}

/// Tries again as long as another process uses it, but begins no try once this time is over.
fn patiently<T>(limit: Duration, mut what: impl FnMut() -> Result<T, No>) -> Result<T, No> {
    let until = Instant::now() + limit;
    loop {
        match what() {
            Err(no) if no.busy && Instant::now() + AGAIN < until => std::thread::sleep(AGAIN),
            done => return done,
        }
    }
}

/// Restores the changes of a killed worker: objects that it made are removed first, then former values come back, the
/// last change first. Returns the exit code.
pub fn put_back(changed: &[Undo]) -> u8 {
    // The killed worker may have mounted tracefs only for itself.
    let _ = tracers();
    let is_value = |how: &&Undo| matches!(how, Undo::Write { .. });
    let newest = || changed.iter().rev();
    let mut left = 0;
    for how in newest().filter(|how| !is_value(how)).chain(newest().filter(is_value)) {
        if let Err(error) = undo(how, &LocalSystem) {
            left += 1;
            crate::stderr::say!("tactus-probe: not reverted: {how}: {error}");
        }
    }
    if left > 0 { 2 } else { 0 }
}

fn refusal(no: &No) -> Refusal {
    let hint = if let Some(hint) = no.hint {
        hint
    } else if no.busy {
        "end it, or remove what a killed one left: rmdir /sys/kernel/tracing/instances/tactus-*"
    } else {
        "use Linux 5.17 or newer with CONFIG_BPF_EVENTS, or a kernel with CONFIG_HWLAT_TRACER or CONFIG_OSNOISE_TRACER \
(Debian: linux-image-rt-ARCH), as root"
    };
    refused(format!("block: {}", no.why), hint)
}

/// The ways to block, in the order in which they are tried. Ways that leave no trace and report what they did come
/// first; ways that change shared settings come last.
type Prepare = fn(&Wanted<'_>) -> Result<Disturbance, No>;
const ENGINES: [(BlockWay, Prepare); 5] = [
    (BlockWay::Bpf, bpf::prepare),
    (BlockWay::Blocksys, blocksys::prepare),
    (BlockWay::Hwlat, tracer::hwlat),
    (BlockWay::Osnoise, tracer::osnoise),
    (BlockWay::PreemptirqDelay, delay::prepare),
];

fn by_some_way(wanted: &Wanted<'_>, block: &Block) -> Result<Disturbance, No> {
    let mut all = No { why: String::new(), busy: false, hint: None };
    for (_, prepare) in ENGINES.into_iter().filter(|(way, _)| block.way.is_none_or(|only| only == *way)) {
        match prepare(wanted) {
            Ok(disturbance) => return Ok(disturbance),
            Err(no) => {
                if !all.why.is_empty() {
                    all.why.push_str("; ");
                }
                all.why.push_str(&no.why);
                all.busy |= no.busy;
                all.hint = all.hint.or(no.hint);
            }
        }
    }
    Err(all)
}

#[cfg(test)]
mod tests {
    use tactus_model::Nanos;
    use tactus_model::catalogue::Fault;

    use crate::fault;

    use super::*;

    #[test]
    fn what_is_busy_is_tried_again_until_its_time_is_over_however_long_a_try_takes() {
        let tries = |limit: Duration, busy: bool| {
            let mut tries = 0;
            let no = patiently(limit, || {
                tries += 1;
                std::thread::sleep(Duration::from_millis(20));
                if tries == 3 { Ok(()) } else { Err(No { why: String::new(), busy, hint: None }) }
            });
            (tries, no.is_ok())
        };
        assert_eq!(tries(Duration::from_millis(10), true), (1, false), "its first try took all of the time");
        assert_eq!(tries(Duration::from_secs(600), true), (3, true));
        assert_eq!(tries(Duration::from_secs(600), false), (1, false), "nobody else uses it");
    }

    #[test]
    fn blocks_that_the_tracers_or_the_watchdogs_do_not_allow_are_refused() {
        for (length, every) in
            [(500, 1_000_000_000), (2_000_000_000, 10_000_000_000), (10_000_000, 10_900_000)]
        {
            let block =
                Block { length: Nanos(length), every: Nanos(every), emulated: None, off: None, way: None };
            let refusal = fault::prepare(&Fault::Block(block), &CpuSet::one(0), 99, None).err().unwrap();
            assert!(refusal.reason.starts_with("block: ") && refusal.hint.is_some(), "{refusal:?}");
        }
    }
}
