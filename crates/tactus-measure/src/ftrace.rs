//! ftrace at a break: the trace is stopped so that new events do not overwrite it, as cyclictest does.
//!
//! This module traces nothing itself. If a tracer or events are on, the thread whose latency exceeded the limit stops
//! the trace with one write, as its last act. The trace stays stopped: a restart would overwrite the events that led to
//! the latency.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use tactus_model::message::Note;
use tactus_model::undo::block::ROOTS;

/// A trace that is being written.
pub struct Ftrace {
    root: PathBuf,
    tracing_on: File,
    stopped: AtomicBool,
}

impl Ftrace {
    /// The trace of this system, if one is on.
    pub fn find() -> Option<Self> {
        ROOTS.iter().find_map(|root| Self::at(Path::new(root)))
    }

    fn at(root: &Path) -> Option<Self> {
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        if read("tracing_on").trim() != "1" {
            return None;
        }
        // `1`: all events are on; `X`: some are; `?`: the system has no events.
        let traces = !["", "nop"].contains(&read("current_tracer").trim())
            || ["1", "X"].contains(&read("events/enable").trim());
        let tracing_on = traces.then(|| File::options().write(true).open(root.join("tracing_on")).ok())??;
        Some(Self { root: root.to_owned(), tracing_on, stopped: AtomicBool::new(false) })
    }

    /// Stops it. The measuring thread calls it, after its last sample.
    pub fn stop(&self) {
        if (&self.tracing_on).write_all(b"0").is_ok() {
            self.stopped.store(true, Ordering::Release);
        }
    }

    /// The note for the report before the measurement.
    pub fn note(&self) -> Note {
        Note::info(format!(
            "the kernel traces ({}): a latency above the limit of `break` stops the trace, so that it ends \
                there",
            self.root.display()
        ))
    }

    /// The note for the report if the trace was stopped.
    pub fn stopped(&self) -> Option<Note> {
        let root = self.root.display();
        self.stopped.load(Ordering::Acquire).then(|| {
            Note::side_effect(format!(
                "tracing was stopped at the break and stays so: {root}/trace contains the events before it; \
                 `echo 1 >{root}/tracing_on` resumes it"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tracefs of files.
    struct Tracefs(PathBuf);

    impl Tracefs {
        fn new(name: &str, tracing_on: &str, tracer: &str, events: &str) -> Self {
            let root = std::env::temp_dir().join(format!("tactus-ftrace-{}-{name}", std::process::id()));
            fs::create_dir_all(root.join("events")).unwrap();
            fs::write(root.join("tracing_on"), tracing_on).unwrap();
            fs::write(root.join("current_tracer"), tracer).unwrap();
            fs::write(root.join("events/enable"), events).unwrap();
            Self(root)
        }
    }

    impl Drop for Tracefs {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_trace_that_is_written_is_stopped_once_and_said_to_be() {
        for (number, (tracer, events)) in
            [("function\n", "0\n"), ("nop\n", "X\n"), ("nop\n", "1\n")].iter().enumerate()
        {
            let tracefs = Tracefs::new(&number.to_string(), "1\n", tracer, events);
            let ftrace = Ftrace::at(&tracefs.0).unwrap();
            assert_eq!(ftrace.stopped(), None);
            ftrace.stop();
            assert_eq!(&fs::read(tracefs.0.join("tracing_on")).unwrap()[..1], b"0");
            assert!(ftrace.stopped().unwrap().text.contains("tracing_on"));
        }
    }

    #[test]
    fn where_nothing_is_traced_nothing_is_stopped() {
        for (name, on, tracer, events) in [
            ("idle", "1\n", "nop\n", "0\n"),
            ("none", "1\n", "nop\n", "?\n"),
            ("off", "0\n", "function\n", "1\n"),
        ] {
            let tracefs = Tracefs::new(name, on, tracer, events);
            assert!(Ftrace::at(&tracefs.0).is_none(), "{name}");
        }
        assert!(Ftrace::at(Path::new("/nonexistent")).is_none());
    }
}
