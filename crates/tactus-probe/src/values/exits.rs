//! `exits`: the cost of operations for which a guest exits, as far as a program can do them.

use std::io;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tactus_model::catalogue::Item;
use tactus_model::catalogue::measure::exits::{
    CPUID, HALT, HYPERCALL, IPI, MMIO_READ, PORT_WRITE, TIMER_ARM, TIMER_WRITE,
};

use super::{Bench, Make, Measurement, Place, alone, timed};
#[cfg(target_arch = "x86_64")]
use crate::sys;

/// The measurement.
pub struct Exits;

static ITEMS: [(Item, Make); 3] = [(CPUID, cpuid), (PORT_WRITE, port_write), (TIMER_ARM, timer_arm)];

static OF_A_KERNEL: [Item; 5] = [MMIO_READ, HYPERCALL, TIMER_WRITE, IPI, HALT];

/// How often the cost of reading the clock is tried.
const TRIES: usize = 1000;
/// From now until the timer is due: sooner than a kernel's tick, and later than the next time it is set.
const SOON_NS: i64 = 100_000;

impl Measurement for Exits {
    fn name(&self) -> &'static str {
        "exits"
    }

    fn items(&self) -> &'static [(Item, Make)] {
        &ITEMS
    }

    fn elsewhere(&self) -> (&'static [Item], &'static str) {
        (
            &OF_A_KERNEL,
            "need the processor without an operating system: an environment of kind `bare` measures them",
        )
    }
}

/// An operation, without what reading the clock around it takes.
fn calibrated(operation: impl Fn() -> io::Result<()> + 'static) -> io::Result<Bench> {
    let mut clock = u64::MAX;
    for _ in 0..TRIES {
        clock = clock.min(timed(|| Ok(()))?);
    }
    Ok(alone(move |batch| {
        let took = timed(|| (0..batch).try_for_each(|_| operation()))?;
        Ok(took.saturating_sub(clock))
    }))
}

#[cfg(target_arch = "x86_64")]
fn cpuid(_: &Place<'_>) -> io::Result<Bench> {
    calibrated(|| {
        sys::ask_cpuid();
        Ok(())
    })
}

#[cfg(target_arch = "x86_64")]
fn port_write(_: &Place<'_>) -> io::Result<Bench> {
    if sys::is_cell() {
        return Err(io::Error::other("Jailhouse stops a cell that writes to a port of others"));
    }
    let port = sys::Port::open()
        .map_err(|error| io::Error::other(format!("ioperm: {error}; it needs CAP_SYS_RAWIO")))?;
    calibrated(move || {
        port.write();
        Ok(())
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid(_: &Place<'_>) -> io::Result<Bench> {
    Err(io::Error::other("this processor has no CPUID"))
}

#[cfg(not(target_arch = "x86_64"))]
fn port_write(_: &Place<'_>) -> io::Result<Bench> {
    Err(io::Error::other("this architecture has no port I/O"))
}

fn timer_arm(_: &Place<'_>) -> io::Result<Bench> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let soon = Itimerspec { it_interval: never, it_value: Timespec { tv_nsec: SOON_NS, ..never } };
    calibrated(move || Ok(timerfd_settime(&timer, TimerfdTimerFlags::empty(), &soon).map(drop)?))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use tactus_model::CpuSet;
    use tactus_model::catalogue::Measure;
    use tactus_model::catalogue::measure;

    use super::*;

    static FINISH: AtomicU64 = AtomicU64::new(0);

    /// The shortest time of `batch` operations.
    fn shortest(bench: &mut Bench, batch: u64) -> u64 {
        (0..50).filter_map(|_| (bench.run)(batch).unwrap()).min().unwrap()
    }

    #[test]
    fn no_operation_is_optimised_away_four_times_as_many_take_longer() {
        let (measure, cpus) = (Measure::Exits(measure::Exits::default()), CpuSet::one(0));
        for (item, make) in &ITEMS {
            let Ok(mut bench) = make(&Place::new(&measure, &cpus, &FINISH)) else {
                continue;
            };
            let (few, many) = (shortest(&mut bench, 100), shortest(&mut bench, 400));
            assert!(many > 2 * few && few > 0, "{}: 100 take {few} ns, 400 {many} ns", item.name);
        }
    }

    #[test]
    fn what_reading_the_clock_takes_is_no_part_of_a_value() {
        let mut nothing = calibrated(|| Ok(())).unwrap();
        let (mut without, mut with) = (Vec::new(), Vec::new());
        // In turn: a processor may run faster at one time than at another.
        for _ in 0..TRIES {
            without.push((nothing.run)(0).unwrap().unwrap());
            with.push(timed(|| (0..0).try_for_each(|_| Ok(()))).unwrap());
        }
        without.sort_unstable();
        with.sort_unstable();
        let (clock, without, with) = (with[0], without[TRIES / 2], with[TRIES / 2]);
        assert!(clock > 0 && without + clock / 2 <= with, "{without} ns of {with} ns are left");
    }
}
