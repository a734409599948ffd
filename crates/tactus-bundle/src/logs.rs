//! The logs of a bundle's rows, line by line, for readers that need every tick and every interval.

use std::collections::BTreeMap;
use std::io;

use tactus_format::export::{TakeInterval, TakeTick};
use tactus_model::histograms::Place;
use tactus_model::series::SeriesKey;
use tactus_model::ticks::TickScalars;
use tactus_system::Directory;

use super::files::SCENARIOS;
use super::slices::Part;
use super::{hlog, ticks};

/// The logs of the rows of a bundle that was read.
pub struct Logs {
    dir: Directory,
    /// The directories of each row, in the order of the bundle's contents: that of each of its slices, or one.
    names: Vec<Vec<(String, Part)>>,
}

impl Logs {
    pub(super) const fn new(dir: Directory, names: Vec<Vec<(String, Part)>>) -> Self {
        Self { dir, names }
    }

    fn row(&self, row: usize) -> io::Result<impl Iterator<Item = io::Result<(&str, Part, Directory)>>> {
        let parts = self.names.get(row).ok_or(io::ErrorKind::NotFound)?;
        Ok(parts
            .iter()
            .map(|(name, part)| Ok((name.as_str(), *part, self.dir.beneath(format!("{SCENARIOS}/{name}"))?))))
    }

    /// Calls with every tick of a row, the ticks of each series in their order. Returns false if the row has
    /// no such log. Unreadable lines were reported when the bundle was read.
    ///
    /// # Errors
    /// When the row does not exist, and those of `take`.
    pub fn ticks(&self, row: usize, take: &mut TakeTick<'_>) -> io::Result<bool> {
        let mut last: BTreeMap<SeriesKey, u64> = BTreeMap::new();
        let mut outcome = Ok(());
        for part in self.row(row)? {
            let (name, part, dir) = part?;
            let mut each = |key: &SeriesKey, tick: &TickScalars| {
                let tick = TickScalars {
                    n: tick.n.saturating_add(part.first_tick),
                    at_ns: tick.at_ns.saturating_add(part.at_ns),
                    ..*tick
                };
                match last.get_mut(key) {
                    Some(last) if tick.n <= *last => return false,
                    Some(last) => *last = tick.n,
                    None => {
                        last.insert(key.clone(), tick.n);
                    }
                }
                if outcome.is_ok() {
                    outcome = take(key, &tick);
                }
                true
            };
            ticks::each(&dir, name, &mut each, &mut Vec::new());
        }
        outcome.map(|()| !last.is_empty())
    }

    /// Calls with every interval of a row's histogram log: its tag, its place, and its counts by number of the bucket.
    ///
    /// # Errors
    /// When the row does not exist, or the log cannot be read further, and those of `take`.
    pub fn intervals(&self, row: usize, take: &mut TakeInterval<'_>) -> io::Result<()> {
        let mut outcome = Ok(());
        for part in self.row(row)? {
            let (_, part, dir) = part?;
            let read = hlog::read(&dir, hlog::LATENCY, |tag, place, counts| {
                let place = Place { start_ns: place.start_ns.saturating_add(part.at_ns), ..place };
                if outcome.is_ok() {
                    outcome = take(tag, place, counts);
                }
                true
            });
            match read {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        outcome
    }
}
