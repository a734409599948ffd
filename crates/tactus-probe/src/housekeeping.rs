//! Places the session's thread while other threads measure.

use tactus_measure::thread::allowed;
use tactus_model::CpuSet;
use tactus_model::message::Note;

use crate::sys;

/// Puts the session thread on the housekeeping CPUs and, when dropped, back where it was.
pub struct House(Option<CpuSet>);

impl House {
    /// Enters. An empty set: the thread stays where it is.
    pub fn enter(cpus: &CpuSet, notes: &mut Vec<Note>) -> Self {
        if cpus.is_empty() {
            return Self(None);
        }
        let before = sys::affinity().ok();
        match sys::set_affinity(cpus) {
            Ok(()) => Self(before),
            Err(error) => {
                notes.push(Note::obstacle(
                    format!("the probe's own work cannot be put on CPUs {cpus} ({error}); it may disturb the measurement"),
                    format!("name housekeeping CPUs among {}", allowed()),
                ));
                Self(None)
            }
        }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = sys::set_affinity(before);
        }
    }
}
