//! The host's account of what its CPUs do while guests measure values: a process of the probe that reads the kernel's
//! records when it begins and when its stdin ends.

use tactus_model::CpuSet;
use tactus_model::outcome::breakdown::Breakdown;
use tactus_system::System;
use tactus_system::guardian::Guardian;

use crate::counting::Counting;

/// One that counts.
pub struct Counter(Counting);

impl Counter {
    /// Begins to count.
    ///
    /// # Errors
    /// Why it cannot be done, in words.
    pub fn start(system: &dyn System, guardian: &Guardian, housekeeping: &CpuSet) -> Result<Self, String> {
        Counting::start(system, guardian, housekeeping, ["breakdown".to_owned()]).map(Self)
    }

    /// Ends it, and says what it has counted.
    pub fn finish(self) -> Option<Breakdown> {
        said(&self.0.finish().ok()?)
    }
}

/// The contents of a line that begins as that of a worker does.
fn said(line: &str) -> Option<Breakdown> {
    serde_json::from_str(line.strip_prefix("breakdown ")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_account_says_nothing() {
        let whole = "breakdown {\"ns\":5,\"switches\":1,\"cpus\":[],\"threads\":[],\"interrupts\":[],\"softirqs\":[]}\n";
        assert_eq!(said(whole).unwrap().ns, 5);
        for line in ["", "breakdown", "breakdown {}", "counting", &whole[..20]] {
            assert_eq!(said(line), None, "{line}");
        }
    }
}
