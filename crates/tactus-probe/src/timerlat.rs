//! Sets up the kernel's timerlat tracer for the threads that read from it (docs/design/timerlat.md).
//!
//! A [`crate::worker`] does it, as for a block: it restores everything when the session ends, however that ends. If the
//! worker itself is killed, another one restores everything.

use tactus_model::catalogue::Measure;
use tactus_model::message::{Activity, Note, Refusal, What};
use tactus_model::undo::block::{Shared, TIMERLAT, WORKLOAD};
use tactus_model::{CpuSet, Nanos};

use crate::fault::{Count, Disturbance, Held};
use crate::tracefs::read;
use crate::tracer::{NotToBeHad, Tracer, has};
use crate::work::tell_note;

/// The options of the trace's lines, set in any case because the defaults may have been changed. A kernel without an
/// option does not need it.
const FORMAT: [&str; 7] =
    ["context-info", "noraw", "nohex", "nobin", "noverbose", "nolatency-format", "norecord-tgid"];
/// A buffer size that is always possible, in KiB for each CPU, however small the trace has been set for all.
const BUFFER_KIB: &str = "1408";

/// Whether an activity measures by the tracer.
pub const fn traces(activity: &Activity) -> bool {
    matches!(&activity.what, What::Measure { measure: Measure::Timerlat(_), .. })
}

/// Why it cannot be had, and what would help.
pub fn refusal(no: &NotToBeHad) -> Refusal {
    let hint = if no.busy {
        "end it, or remove what a killed one left: rmdir /sys/kernel/tracing/instances/tactus-*"
    } else {
        "use a kernel with CONFIG_TIMERLAT_TRACER (Debian: linux-image-rt-ARCH), as root, where tracefs may be written"
    };
    Refusal { reason: ["timerlat: ", &no.why].concat(), hint: Some(hint.into()) }
}

/// The tracer while it is read of.
struct Measuring {
    tracer: Tracer,
    cpus: CpuSet,
    priority: u32,
}

/// Sets it up; nothing is traced yet.
///
/// # Errors
/// Why it cannot be had. Everything is then as it was.
pub fn prepare(activity: &Activity) -> Result<Disturbance, Refusal> {
    let What::Measure { interval_ns, priority, .. } = &activity.what else {
        return Err(Refusal { reason: "without a measurement there is nothing to trace".into(), hint: None });
    };
    let cpus = activity.cpus.clone();
    let tracer = set_up(*interval_ns, &cpus).map_err(|no| refusal(&no))?;
    tell_note(&Note::side_effect(format!(
        "the kernel's timerlat tracer runs on CPUs {cpus} every {}. Settings that timerlat and osnoise share \
         for the whole machine are changed for it, and reverted at the end",
        Nanos(*interval_ns)
    )));
    let held = Measuring { tracer, cpus, priority: *priority };
    Ok(Disturbance {
        way: "timerlat tracer".into(),
        works: Vec::new(),
        longest: &[],
        held: Some(Box::new(held)),
        made: None,
    })
}

fn set_up(interval_ns: u64, cpus: &CpuSet) -> Result<Tracer, NotToBeHad> {
    let mut tracer = Tracer::claim(&TIMERLAT)?;
    // The session compares its times with others.
    tracer.own("trace_clock", "mono")?;
    for option in FORMAT {
        let _ = tracer.own("trace_options", option);
    }
    let _ = tracer.own("buffer_size_kb", BUFFER_KIB);
    // Without this option no threads of the kernel measure: the tracer may be set up for threads of a program.
    let without = ["NO_", WORKLOAD].concat();
    if has(&read(Shared::OPTIONS.path()).unwrap_or_default(), &without) {
        tracer.change(Shared::OPTIONS, without, WORKLOAD)?;
    }
    // At a limit it would stop.
    for limit in Shared::STOPS {
        tracer.set(limit, "0")?;
    }
    tracer.set(Shared::CPUS, &cpus.to_string())?;
    tracer.set(Shared::TIMERLAT_PERIOD, &(interval_ns / 1_000).to_string())?;
    tracer.own("current_tracer", TIMERLAT.name)?;
    Ok(tracer)
}

impl Held for Measuring {
    fn begin(&mut self) -> Result<(), String> {
        self.tracer.own("tracing_on", "1")?;
        let done = self.tracer.schedule(&self.cpus, self.priority);
        if done != self.cpus {
            let (cpus, priority) = (&self.cpus, self.priority);
            tell_note(&Note::obstacle(
                format!(
                    "timerlat's threads on CPUs {cpus} could not all be given SCHED_FIFO {priority}: the kernel's own \
                     is 95 (done on `{done}`)"
                ),
                "measure with priority 95, or where the kernel's threads can be seen",
            ));
        }
        Ok(())
    }

    fn end(&mut self) -> Result<Count, String> {
        if !self.tracer.is_claimed() {
            return Ok(Count::default());
        }
        let stopped = self.tracer.own("tracing_on", "0");
        let ended = self.tracer.end();
        stopped.and(ended).map(|()| Count::default())
    }
}
