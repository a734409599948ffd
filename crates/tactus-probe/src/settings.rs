//! Settings of a job: made before any other part of it starts, and restored at its end if the job says so.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path};

use tactus_model::CpuSet;
use tactus_model::change::{Change, Target, Thread};
use tactus_model::message::{Note, Refusal};

use crate::sys::{self, SchedAttr};

/// Settings that are made. Dropping them puts the former values back, if that was asked for.
#[derive(Default)]
pub struct Applied {
    /// The former values, in the order in which they were changed.
    former: Vec<(Target, Former)>,
}

/// The former value.
enum Former {
    Text(String),
    Scheduling(SchedAttr),
    Cpus(CpuSet),
}

/// How one change ended.
enum Outcome {
    /// Set; the former value in words.
    Set(String),
    /// It had this value already.
    Was,
}

impl Applied {
    /// Applies the settings one after the other. A failed one becomes a note, and the others still apply.
    ///
    /// # Errors
    /// When one of them cannot be set by a probe while the system runs. No setting is then applied.
    pub fn new(changes: &[Change], restore: bool, notes: &mut Vec<Note>) -> Result<Self, Refusal> {
        if let Some(change) = changes.iter().find(|change| !can_set(&change.target)) {
            return Err(Refusal {
                reason: format!("{} cannot be set by a probe while the system runs", change.target),
                hint: Some(
                    "a probe can set files of /proc and /sys, and scheduling and CPUs of threads".into(),
                ),
            });
        }
        let (mut applied, mut done, mut already) = (Self::default(), Vec::new(), 0);
        for change in changes {
            match applied.one(change, restore) {
                Ok(Outcome::Set(was)) => {
                    let line = format!("{} = {} (was {was})", change.target, change.then);
                    done.push(line);
                }
                Ok(Outcome::Was) => already += 1,
                Err(words) => notes.push(Note::obstacle(
                    format!("{} could not be set to {}: {words}", change.target, change.then),
                    format!("`tactus explain {}` lists its requirements", change.check),
                )),
            }
        }
        if !done.is_empty() || already > 0 {
            let list = if done.is_empty() { String::new() } else { format!(": {}", done.join(", ")) };
            notes.push(Note::side_effect(format!(
                "{} of {} made{list}; {already} had their value already",
                done.len(),
                match changes.len() {
                    1 => "1 setting".to_owned(),
                    many => format!("{many} settings"),
                }
            )));
        }
        Ok(applied)
    }

    fn one(&mut self, change: &Change, restore: bool) -> Result<Outcome, String> {
        let words = |error: io::Error| error.to_string();
        let then = change.then.as_str();
        let (former, was) = match &change.target {
            Target::File { path, form } => {
                let text = read(path).map_err(|error| format!("it cannot be read ({error})"))?;
                if form.same(&text, then) {
                    return Ok(Outcome::Was);
                }
                let was = form.value(&text);
                fs::write(path, then).map_err(words)?;
                let now = read(path).map_err(words)?;
                if !form.same(&now, then) {
                    // The value that the kernel set instead must be undone as well.
                    self.keep(change, restore, Former::Text(was.clone()));
                    return Err(format!("it accepted {} instead (was {was})", form.value(&now)));
                }
                (Former::Text(was.clone()), was)
            }
            Target::Scheduling(thread) => {
                same_thread(thread)?;
                let attr = SchedAttr::parse(then).ok_or_else(|| format!("`{then}` is not a scheduling"))?;
                let was = sys::scheduler_of(thread.tid).map_err(words)?;
                if was.to_string() == attr.to_string() {
                    return Ok(Outcome::Was);
                }
                sys::set_scheduler_of(thread.tid, attr).map_err(words)?;
                (Former::Scheduling(was), was.to_string())
            }
            Target::Affinity(thread) => {
                same_thread(thread)?;
                let cpus: CpuSet = then.parse().map_err(|_| format!("`{then}` is not a list of CPUs"))?;
                let was = sys::affinity_of(thread.tid).map_err(words)?;
                if was == cpus {
                    return Ok(Outcome::Was);
                }
                sys::set_affinity_of(thread.tid, &cpus).map_err(words)?;
                let text = was.to_string();
                (Former::Cpus(was), text)
            }
            other => return Err(format!("{other} cannot be set here")),
        };
        self.keep(change, restore, former);
        Ok(Outcome::Set(was))
    }

    fn keep(&mut self, change: &Change, restore: bool, former: Former) {
        if restore {
            self.former.push((change.target.clone(), former));
        }
    }

    /// Puts the former values back, the last one first, and says what could not be.
    pub fn take_back(&mut self) -> Vec<Note> {
        let mut notes = Vec::new();
        while let Some((target, former)) = self.former.pop() {
            if let Err(words) = put_back(&target, &former) {
                notes.push(Note::obstacle(
                    format!("{target} could not be restored to {former}: {words}"),
                    "set it by hand",
                ));
            }
        }
        notes
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        // The receiver of the notes has gone.
        self.take_back();
    }
}

impl std::fmt::Display for Former {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Scheduling(attr) => attr.fmt(f),
            Self::Cpus(cpus) => cpus.fmt(f),
        }
    }
}

fn put_back(target: &Target, former: &Former) -> Result<(), String> {
    let words = |error: io::Error| error.to_string();
    match (target, former) {
        (Target::File { path, .. }, Former::Text(text)) => fs::write(path, text).map_err(words),
        // A thread that has ended needs no restoring.
        (Target::Scheduling(thread) | Target::Affinity(thread), _) if same_thread(thread).is_err() => Ok(()),
        (Target::Scheduling(thread), Former::Scheduling(attr)) => {
            sys::set_scheduler_of(thread.tid, *attr).map_err(words)
        }
        (Target::Affinity(thread), Former::Cpus(cpus)) => {
            sys::set_affinity_of(thread.tid, cpus).map_err(words)
        }
        _ => Ok(()),
    }
}

/// The targets that a probe can set: values of the running kernel, and threads.
fn can_set(target: &Target) -> bool {
    match target {
        Target::File { path, .. } => {
            let path = Path::new(path);
            (path.starts_with("/proc") || path.starts_with("/sys"))
                && path.components().all(|part| part != Component::ParentDir)
        }
        Target::Scheduling(_) | Target::Affinity(_) => true,
        Target::Kernel { .. } | Target::Module { .. } | Target::Service { .. } | Target::DropIn { .. } => {
            false
        }
    }
}

/// The kernel's value without the newline at its end. It is asked for in one piece: some files
/// (`osnoise/cpus`) refuse to be read in small ones.
pub fn read(path: &str) -> io::Result<String> {
    let mut text = Vec::with_capacity(4096);
    fs::File::open(path)?.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}

/// Whether the number still is that thread.
fn same_thread(thread: &Thread) -> Result<(), String> {
    let now =
        read(&format!("/proc/{}/stat", thread.tid)).map_err(|_| "this thread does not exist".to_owned())?;
    if thread.is_in(&now) {
        return Ok(());
    }
    let name = now.rsplit_once(')').and_then(|(front, _)| Some(front.split_once('(')?.1)).unwrap_or_default();
    Err(format!("its number now belongs to `{name}`, which was started later or has another name"))
}

#[cfg(test)]
mod tests {
    use tactus_model::change::{Effect, Form};

    use super::*;

    fn change(target: Target, then: &str) -> Change {
        Change { check: "a-check".into(), target, now: None, then: then.into(), effect: Effect::Runtime }
    }

    fn file(path: &str, then: &str) -> Change {
        change(Target::File { path: path.into(), form: Form::Plain }, then)
    }

    /// The thread of this test, which may be given other CPUs.
    fn own() -> Thread {
        let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let stat = read(&format!("/proc/{tid}/stat")).unwrap();
        let name = stat[stat.find('(').unwrap() + 1..stat.rfind(')').unwrap()].to_owned();
        Thread { tid, name, started: tactus_model::process_files::started(&stat) }
    }

    #[test]
    fn the_cpus_of_a_thread_are_set_and_put_back() {
        let before = sys::affinity().unwrap();
        let one = CpuSet::one(before.last().unwrap());
        let mut notes = Vec::new();
        let changes = [change(Target::Affinity(own()), &one.to_string())];
        let mut applied = Applied::new(&changes, true, &mut notes).unwrap();
        assert_eq!(sys::affinity().unwrap(), one);
        assert!(notes[0].text.contains(" made"), "{notes:?}");
        assert!(applied.take_back().is_empty());
        assert_eq!(sys::affinity().unwrap(), before);
        drop(Applied::new(&changes, false, &mut notes).unwrap());
        assert_eq!(sys::affinity().unwrap(), one, "it stays where nobody asked for it to be put back");
        sys::set_affinity(&before).unwrap();
    }

    #[test]
    fn a_failed_setting_is_reported_with_the_kernels_error_and_the_others_apply() {
        let before = sys::affinity().unwrap();
        let stranger = Thread { name: "somebody else".into(), ..own() };
        let changes = [
            file("/proc/version", "1"),
            file("/proc/sys/kernel/no_such_file", "1"),
            change(Target::Affinity(stranger), "0"),
            change(Target::Affinity(Thread { started: Some(1), ..own() }), "0"),
            change(Target::Scheduling(own()), "FIFO lots"),
            change(Target::Affinity(own()), "8000"),
            change(Target::Affinity(own()), &before.to_string()),
        ];
        let mut notes = Vec::new();
        let applied = Applied::new(&changes, true, &mut notes).unwrap();
        assert!(applied.former.is_empty());
        let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(texts.len(), 7, "{texts:?}");
        assert!(texts[1].contains("No such file"), "{texts:?}");
        assert!(texts[2].contains("now belongs to") && texts[3].contains("was started later"), "{texts:?}");
        assert!(texts[4].contains("is not a scheduling"), "{texts:?}");
        assert!(texts[5].contains("Invalid argument"), "{texts:?}");
        assert!(texts[6].starts_with("0 of 7 settings made; 1 had their value already"), "{texts:?}");
    }

    #[test]
    fn what_is_no_setting_of_a_running_system_is_refused_by_name() {
        let targets = [
            (Target::Kernel { parameter: "isolcpus".into() }, "kernel parameter isolcpus"),
            (Target::Service { unit: "irqbalance.service".into() }, "service irqbalance.service"),
            (Target::File { path: "/etc/passwd".into(), form: Form::Plain }, "/etc/passwd"),
            (Target::File { path: "/proc/../etc/passwd".into(), form: Form::Plain }, "/proc/../etc/passwd"),
        ];
        for (target, name) in targets {
            let refusal = Applied::new(&[change(target, "1")], true, &mut Vec::new()).err().unwrap();
            assert!(refusal.reason.contains(name), "{refusal:?}");
        }
    }
}
