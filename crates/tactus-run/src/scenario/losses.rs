//! Frames that did not arrive. A line that loses every second frame would cause one event for each frame that
//! arrives: so the losses of each moment are reported together, and none is left out. Pure.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often losses of an environment are told, at most.
const MOMENT: Duration = Duration::from_secs(1);

/// Lost frames by environment.
#[derive(Debug, Default)]
pub(super) struct Losses(BTreeMap<String, Lost>);

#[derive(Debug, Default)]
struct Lost {
    frames: u64,
    untold: u64,
    told: Option<Instant>,
}

impl Losses {
    /// Frames of an environment were lost.
    pub fn add(&mut self, environment: &str, frames: u64) {
        let lost = self.0.entry(environment.to_owned()).or_default();
        lost.frames = lost.frames.saturating_add(frames);
        lost.untold = lost.untold.saturating_add(frames);
    }

    /// How many of an environment were lost so far.
    pub fn of(&self, environment: &str) -> u64 {
        self.0.get(environment).map_or(0, |lost| lost.frames)
    }

    /// Those that are to be told now, at an end all that were not told.
    pub fn due(&mut self, now: Instant, all: bool) -> Vec<(String, u64)> {
        let due = |lost: &Lost| {
            lost.untold > 0
                && (all || lost.told.is_none_or(|told| now.saturating_duration_since(told) >= MOMENT))
        };
        let due = self.0.iter_mut().filter(|(_, lost)| due(lost));
        due.map(|(environment, lost)| {
            lost.told = Some(now);
            (environment.clone(), std::mem::take(&mut lost.untold))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_a_moment_are_told_together_and_none_is_left_out() {
        let (mut losses, begin) = (Losses::default(), Instant::now());
        let mut told = Vec::new();
        for ms in 0..2_500u64 {
            losses.add("guest", 2);
            told.extend(losses.due(begin + Duration::from_millis(ms), false));
        }
        assert_eq!(told.len(), 3, "{told:?}");
        told.extend(losses.due(begin, true));
        assert_eq!(told.iter().map(|(_, frames)| frames).sum::<u64>(), 5_000);
        assert_eq!(losses.of("guest"), 5_000);
        assert!(losses.due(begin, true).is_empty() && losses.of("host") == 0);
        losses.add("guest", u64::MAX);
        assert_eq!(losses.of("guest"), u64::MAX, "as many as there are numbers");
    }
}
