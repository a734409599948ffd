//! Reports and answers of bundles. Reading and drawing a day's run may take seconds and much memory. So it is
//! done for one at a time, and the result is kept.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tactus_bundle::Trust;
use tactus_model::bundle::Contents;
use tactus_model::text::clean;
use tactus_report::answer::answer;
use tactus_report::part::Tone;
use tactus_report::render::html;
use tactus_report::units::shortened;
use tactus_system::Directory;

use super::catalogue::{Catalogue, Found, MOST, SENTENCE, Stamp};
use super::lock;

/// Bytes of pages that are kept.
const PAGES: usize = 64 << 20;
/// Between two bundles that are read for the list: who waits for a report goes first.
const GAP: Duration = Duration::from_millis(20);

/// The answer of a bundle, for the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// `MET`, `NOT MET, EMULATED`.
    pub word: String,
    /// How good the news is.
    pub tone: Tone,
    /// In a sentence.
    pub sentence: String,
}

/// Known answers of bundles.
#[derive(Default)]
pub struct Answers {
    /// The lock for reading one.
    turn: Mutex<()>,
    /// The last requested one stands last.
    pages: Mutex<VecDeque<(Key, Arc<[u8]>)>>,
    told: Mutex<HashMap<OsString, (Stamp, Told)>>,
    wanted: Mutex<Vec<Found>>,
    wanting: Condvar,
}

type Key = (OsString, Stamp, bool);

impl Answers {
    /// The page of a bundle, as `tactus report` makes it. `damaged`: of what is left of it.
    ///
    /// # Errors
    /// In words, when it cannot be read or drawn.
    pub fn page(&self, found: &Found, dir: &Directory, damaged: bool) -> Result<Arc<[u8]>, String> {
        let key = (found.name.clone(), found.stamp, damaged);
        if let Some(page) = self.kept(&key) {
            return Ok(page);
        }
        let _turn = lock(&self.turn);
        // Another thread may have made the same one meanwhile.
        if let Some(page) = self.kept(&key) {
            return Ok(page);
        }
        let contents = self.read(found, dir, damaged)?;
        let page: Arc<[u8]> = html::render(&contents).map_err(|error| error.to_string())?.into_bytes().into();
        let mut pages = lock(&self.pages);
        // Older states of a run in progress are not requested again.
        pages.retain(|((name, _, own), _)| *name != found.name || *own != damaged);
        pages.push_back((key, Arc::clone(&page)));
        while pages.iter().map(|(_, page)| page.len()).sum::<usize>() > PAGES {
            pages.pop_front();
        }
        Ok(page)
    }

    /// The lock of the one thread that may read a bundle.
    pub const fn turn(&self) -> &Mutex<()> {
        &self.turn
    }

    /// The answers of a bundle, if it was read; otherwise it is read soon.
    pub fn told(&self, found: &Found) -> Option<Told> {
        let told = lock(&self.told);
        told.get(&found.name).filter(|(stamp, _)| *stamp == found.stamp).map(|(_, told)| told.clone())
    }

    /// Asks for the answers of these, and no longer for those of others.
    pub fn want(&self, bundles: impl Iterator<Item = Found>) {
        let mut wanted: Vec<Found> = bundles.collect();
        // The first one is taken from the end.
        wanted.reverse();
        *lock(&self.wanted) = wanted;
        self.wanting.notify_all();
    }

    /// Reads requested bundles, for ever.
    pub fn read_on(&self, catalogue: &Catalogue) -> ! {
        loop {
            let mut wanted = lock(&self.wanted);
            let next = loop {
                match wanted.pop() {
                    Some(next) => break next,
                    None => wanted = self.wanting.wait(wanted).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(wanted);
            if self.told(&next).is_none()
                && let Ok(Some((found, dir))) = catalogue.find(&next.name)
            {
                let turn = lock(&self.turn);
                let _ = self.read(&found, &dir, false);
                drop(turn);
            }
            std::thread::sleep(GAP);
        }
    }

    fn kept(&self, key: &Key) -> Option<Arc<[u8]>> {
        let mut pages = lock(&self.pages);
        let at = pages.iter().position(|(own, _)| own == key)?;
        let kept = pages.remove(at)?;
        let page = Arc::clone(&kept.1);
        pages.push_back(kept);
        Some(page)
    }

    /// Reads a bundle, and keeps its answer.
    fn read(&self, found: &Found, dir: &Directory, damaged: bool) -> Result<Contents, String> {
        let trust = if damaged { Trust::Damaged } else { Trust::Whole };
        let read = tactus_bundle::read_from(dir, trust).map_err(|error| clean(&error.to_string()));
        let told = match &read {
            Ok(_) if damaged => return read,
            Ok(contents) => {
                let answer = answer(contents);
                let sentence = shortened(&clean(&answer.sentence), SENTENCE);
                Told { word: answer.led(), tone: answer.tone, sentence }
            }
            Err(why) => Told { word: "NOT READ".into(), tone: Tone::Bad, sentence: shortened(why, SENTENCE) },
        };
        let mut all = lock(&self.told);
        // Names of removed bundles are forgotten at some time.
        if all.len() >= 2 * MOST {
            all.clear();
        }
        all.insert(found.name.clone(), (found.stamp, told));
        drop(all);
        read
    }
}
