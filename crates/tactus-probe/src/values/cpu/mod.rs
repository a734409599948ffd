//! `cpu`: what a processor computes.

mod coremark;
mod kernel;

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use tactus_model::CpuSet;
use tactus_model::catalogue::measure::cpu::{
    CLOCK, COREMARK, CRC, DOUBLE_DIVIDE, FLOAT_DIVIDE, INTEGER_DIVIDE, LINKED_LIST, MATRIX, MIX, MIX_ALL,
    MIX_PER_MHZ, STATE_MACHINE,
};
use tactus_model::catalogue::{Item, Measure};

use self::kernel::{Kernel, Kernels};
use super::disturbance::cycles_per_us;
use super::repeat::was_disturbed;
use super::{Bench, Make, Measurement, Operation, Place, TAKEN, alone, partner, timed};
use crate::sys;

/// The measurement.
pub struct Cpu;

static ITEMS: [(Item, Make); 12] = [
    (LINKED_LIST, |_| Ok(kernel(Kernel::List))),
    (MATRIX, |_| Ok(kernel(Kernel::Matrix))),
    (STATE_MACHINE, |_| Ok(kernel(Kernel::States))),
    (CRC, |_| Ok(kernel(Kernel::Crc))),
    (MIX, |_| Ok(Bench { of: Operation::Count, ..kernel(Kernel::Mix) })),
    (MIX_PER_MHZ, mix_per_mhz),
    (MIX_ALL, mix_on_all),
    (CLOCK, clock),
    (INTEGER_DIVIDE, integer_divide),
    (FLOAT_DIVIDE, float_divide),
    (DOUBLE_DIVIDE, double_divide),
    (COREMARK, coremark::coremark),
];

/// The answer of another CPU for a batch that was disturbed there.
const DISTURBED: u64 = u64::MAX;
/// Divisions in one turn of the loop.
const UNROLLED: u64 = 16;

impl Measurement for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn uses_all_cpus(&self) -> bool {
        true
    }

    fn items(&self) -> &'static [(Item, Make)] {
        &ITEMS
    }

    fn asks_for(&self, item: &Item, measure: &Measure) -> bool {
        let named = matches!(measure, Measure::Cpu(cpu) if cpu.coremark.is_some());
        named || item.name != COREMARK.name
    }
}

fn kernel(kernel: Kernel) -> Bench {
    let mut kernels = Kernels::new();
    alone(move |batch| timed(|| kernels.run(kernel, batch)))
}

fn clock(_: &Place<'_>) -> io::Result<Bench> {
    let run = |batch: u64| {
        timed(|| {
            for _ in 0..batch {
                black_box(sys::additions(1_024));
            }
            Ok(())
        })
    };
    Ok(Bench { of: Operation::Cycles(1_024), ..alone(run) })
}

fn mix_per_mhz(_: &Place<'_>) -> io::Result<Bench> {
    let mut kernels = Kernels::new();
    let run = move |batch| {
        let before = cycles_per_us();
        let took = timed(|| kernels.run(Kernel::Mix, batch))?;
        let after = cycles_per_us();
        // As long as it would take with a clock of 1 MHz.
        Ok(took.saturating_mul(before.midpoint(after)))
    };
    Ok(Bench { of: Operation::Count, ..alone(run) })
}

/// The mix on every CPU at once. The time is that in which one CPU that is as fast as all of them does a batch.
fn mix_on_all(place: &Place<'_>) -> io::Result<Bench> {
    let mut kernels = Kernels::new();
    let mut others = Vec::new();
    for cpu in place.cpus.iter().skip(1) {
        let (ours, theirs) = UnixStream::pair()?;
        partner(|| answer(theirs, cpu))?;
        others.push(ours);
    }
    let run = move |batch: u64| {
        for other in &mut others {
            other.write_all(&batch.to_ne_bytes())?;
        }
        let mut rates = Some(inverse(timed(|| kernels.run(Kernel::Mix, batch))?));
        for other in &mut others {
            let mut took = [0; 8];
            other.read_exact(&mut took)?;
            let rate = Some(u64::from_ne_bytes(took)).filter(|took| *took != DISTURBED).map(inverse);
            rates = rates.zip(rate).map(|(sum, rate)| sum + rate);
        }
        Ok(rates.map(inverse_of))
    };
    Ok(Bench { run: Box::new(run), of: Operation::Count, ..alone(|_| Ok(0)) })
}

/// The work of the process on another CPU: it runs a batch for each number of iterations that it receives.
fn answer(mut orders: UnixStream, cpu: u32) -> io::Result<()> {
    sys::set_affinity(&CpuSet::one(cpu))?;
    let (mut kernels, mut count) = (Kernels::new(), [0; 8]);
    while orders.read_exact(&mut count).is_ok() {
        let had = sys::own_time();
        let took = timed(|| kernels.run(Kernel::Mix, u64::from_ne_bytes(count)))?;
        let says = if was_disturbed(took, sys::own_time() - had, TAKEN) { DISTURBED } else { took };
        orders.write_all(&says.to_ne_bytes())?;
    }
    Ok(())
}

fn inverse(ns: u64) -> f64 {
    1.0 / tactus_model::number::float(ns.max(1))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time in ns, at least 0")]
fn inverse_of(rate: f64) -> u64 {
    (1.0 / rate) as u64
}

/// A benchmark of divisions that wait for each other.
macro_rules! divisions {
    ($name:ident, $number:ty, $dividend:expr, $first:expr) => {
        fn $name(_: &Place<'_>) -> io::Result<Bench> {
            let run = |batch: u64| {
                let (dividend, mut x): ($number, $number) = black_box(($dividend, $first));
                let took = timed(|| {
                    for _ in 0..batch {
                        for _ in 0..UNROLLED {
                            x = dividend / x;
                        }
                    }
                    Ok(())
                });
                black_box(x);
                took
            };
            Ok(Bench { of: Operation::Parts(16), ..alone(run) })
        }
    };
}

divisions!(float_divide, f32, 1.7, 1.3);
divisions!(double_divide, f64, 1.7, 1.3);

fn integer_divide(_: &Place<'_>) -> io::Result<Bench> {
    let run = |batch: u64| {
        let (dividend, mut x): (u32, u32) = black_box((1_999_999_973, 36_487));
        let took = timed(|| {
            for _ in 0..batch {
                for _ in 0..UNROLLED {
                    // Never 0: the quotient is at least 1, as `x` never exceeds the dividend.
                    x = dividend.checked_div(x).unwrap_or(1);
                }
            }
            Ok(())
        });
        black_box(x);
        took
    };
    Ok(Bench { of: Operation::Parts(16), ..alone(run) })
}
