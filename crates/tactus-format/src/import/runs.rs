//! Files with several runs behind one another. Each run is read alone, and nothing of two runs is added up.

use std::io::Read;

use super::text::Lines;
use super::{ImportError, Recording};

/// The most runs of a file.
const MOST_RUNS: u32 = 256;

/// The most series of a file with several runs: all of them are in memory at once.
const MOST_SERIES: usize = 1024;

/// All runs of a file. `one` reads a run, and calls [`Lines::again`] at the line that begins the next one.
pub(super) fn each<R: Read>(
    mut lines: Lines<R>,
    mut one: impl FnMut(&mut Lines<R>) -> Result<Vec<Recording>, ImportError>,
) -> Result<Vec<Recording>, ImportError> {
    let mut runs = Runs::default();
    loop {
        let run = one(&mut lines)?;
        runs.add(run).map_err(|what| lines.error(what))?;
        if !lines.has_again() {
            return Ok(runs.all);
        }
    }
}

/// The runs read so far.
#[derive(Default)]
pub(super) struct Runs {
    pub all: Vec<Recording>,
    runs: u32,
    series: usize,
}

impl Runs {
    /// Adds a run. The recordings of a file with one run have no number.
    pub fn add(&mut self, run: Vec<Recording>) -> Result<(), String> {
        self.runs += 1;
        self.series += run.iter().map(|recording| recording.series.len()).sum::<usize>();
        if self.runs > 1 && (self.runs > MOST_RUNS || self.series > MOST_SERIES) {
            return Err(format!(
                "it has more than {MOST_RUNS} runs, or {MOST_SERIES} threads in them: split it into several files"
            ));
        }
        if self.runs == 2 {
            self.all.iter_mut().for_each(|recording| recording.run = Some(1));
        }
        let number = (self.runs > 1).then_some(self.runs);
        self.all.extend(run.into_iter().map(|recording| Recording { run: number, ..recording }));
        Ok(())
    }
}
