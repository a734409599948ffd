//! Settings that come with a job, as the host side meets them.

use std::process::{Child, Command};

use tactus_model::CpuSet;
use tactus_model::catalogue::measure::Timer;
use tactus_model::change::{Change, Effect, Form, Target, Thread};
use tactus_model::message::{End, Job, NoteKind, ToProbe};

use crate::common::{Probe, eventually, job, skipped, timer};

/// A process whose CPUs are the setting.
struct Patient(Child);

impl Patient {
    fn start() -> Self {
        let patient = Self(Command::new("sleep").arg("600").spawn().unwrap());
        // Until then it is still called after this test.
        assert!(eventually(|| patient.name() == "sleep"));
        patient
    }

    fn name(&self) -> String {
        let text = std::fs::read_to_string(format!("/proc/{}/comm", self.0.id())).unwrap_or_default();
        text.trim().to_owned()
    }

    fn cpus(&self) -> CpuSet {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        line.trim().parse().unwrap()
    }

    fn change(&self, cpus: &CpuSet) -> Change {
        let thread = Thread { tid: self.0.id(), name: self.name(), started: None };
        Change {
            check: "foreign-tasks".into(),
            target: Target::Affinity(thread),
            now: None,
            then: cpus.to_string(),
            effect: Effect::Runtime,
        }
    }
}

impl Drop for Patient {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A job that puts the patient on one CPU.
fn moving(probe: &Probe, patient: &Patient, restore: bool) -> Job {
    let changes = vec![patient.change(&probe.house())];
    Job { changes, restore, ..job(probe, vec![timer(0, probe.cpu(), Timer::default())]) }
}

#[test]
fn settings_hold_while_the_job_runs_and_are_put_back_at_its_end() {
    let (mut probe, patient) = (Probe::start(), Patient::start());
    let before = patient.cpus();
    let job = moving(&probe, &patient, true);
    if let Err(refusal) = probe.prepare(job.clone()) {
        return skipped(&refusal.reason);
    }
    assert_eq!(patient.cpus(), probe.house());
    let note = probe.notes.iter().find(|note| note.text.contains("1 of 1 setting made")).unwrap();
    assert_eq!(note.kind, NoteKind::SideEffect);
    probe.say(&ToProbe::Go);
    assert_eq!(probe.finish().1.end, End::Complete);
    assert_eq!(patient.cpus(), before, "before `done` is said");
    probe.perform(Job { restore: false, ..job }).unwrap();
    assert_eq!(patient.cpus(), probe.house(), "it stays where it is not to be put back");
}

#[test]
fn settings_are_put_back_whatever_the_end_is() {
    let patient = Patient::start();
    let before = patient.cpus();
    let mut probe = Probe::start();
    let job = moving(&probe, &patient, true);
    if let Err(refusal) = probe.prepare(job.clone()) {
        return skipped(&refusal.reason);
    }
    probe.say(&ToProbe::Stop);
    probe.finish();
    assert_eq!(patient.cpus(), before, "stopped before it began");
    probe.prepare(Job { duration_ns: u64::MAX / 4, ..job.clone() }).unwrap();
    probe.say(&ToProbe::Go);
    probe.say(&ToProbe::Stop);
    assert_eq!(probe.finish().1.end, End::Stopped);
    assert_eq!(patient.cpus(), before, "stopped while it ran");
    let refused = vec![timer(0, "4000".parse().unwrap(), Timer::default())];
    probe.prepare(Job { activities: refused, ..job.clone() }).unwrap_err();
    assert_eq!(patient.cpus(), before, "refused");
    probe.prepare(job).unwrap();
    probe.say(&ToProbe::Go);
    drop(probe.stdin.take());
    assert!(probe.ends() && eventually(|| patient.cpus() == before), "the stream ended");
}

#[test]
fn a_job_with_a_setting_that_needs_a_reboot_is_refused_by_name() {
    let (mut probe, patient) = (Probe::start(), Patient::start());
    let mut job = moving(&probe, &patient, true);
    job.changes.push(Change {
        target: Target::Kernel { parameter: "nohz_full".into() },
        effect: Effect::Boot,
        ..job.changes[0].clone()
    });
    let before = patient.cpus();
    let refusal = probe.prepare(job).unwrap_err();
    assert!(refusal.reason.contains("kernel parameter nohz_full"), "{refusal:?}");
    assert_eq!(patient.cpus(), before, "nothing was set");
}

#[test]
fn a_value_of_the_kernel_is_set_for_the_job_and_put_back() {
    const PATH: &str = "/proc/sys/vm/stat_interval";
    let read = || std::fs::read_to_string(PATH).unwrap().trim().to_owned();
    let mut probe = Probe::start();
    if std::fs::OpenOptions::new().write(true).open(PATH).is_err() {
        return skipped("the kernel's values may not be written by this user");
    }
    let before = read();
    let then = if before == "7" { "8" } else { "7" };
    let change = Change {
        check: "vmstat-interval".into(),
        target: Target::File { path: PATH.into(), form: Form::Plain },
        now: Some(before.clone()),
        then: then.into(),
        effect: Effect::Runtime,
    };
    let job = job(&probe, vec![timer(0, probe.cpu(), Timer::default())]);
    if let Err(refusal) = probe.prepare(Job { changes: vec![change], restore: true, ..job }) {
        return skipped(&refusal.reason);
    }
    assert_eq!(read(), then);
    assert_eq!(probe.facts.text(PATH), Some(then), "the facts are those of what is measured");
    probe.say(&ToProbe::Go);
    probe.finish();
    assert_eq!(read(), before);
}
