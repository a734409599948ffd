//! A run from another terminal, by what it writes. Nothing is locked,
//! written or asked of the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tactus_model::text::clean;
use tactus_run::Interrupt;
use tactus_serve::{SILENCE, look, rest};
use tactus_system::{Directory, Run};
use tactus_watch::Shared;
use tactus_watch::screen::{human, micro};
use tactus_watch::state::{Stage, Watched};
use tactus_watch::terminal::is_possible;
use tactus_watch::view::{Asked, View};

use crate::exit::Failure;
use crate::say::say;
use crate::watching::shown;

/// How often it is looked whether somebody wants to leave.
const STEP: Duration = Duration::from_millis(100);

/// Why a run is followed no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// Its bundle is finished.
    Ended,
    /// Its process has gone, and its bundle is not finished.
    Died,
    /// Somebody has seen enough.
    Left,
}

/// Follows a run until it ends, or somebody has seen enough; `run`: who writes the bundle, where that is known.
pub fn follow(dir: &Directory, plain: bool, run: Option<&Run>) -> Result<Followed, Failure> {
    let interrupt = Interrupt::listen()?;
    let shared = Shared::new(look(dir)?);
    let left = Arc::new(AtomicBool::new(false));
    let screen = (!plain && is_possible() && shared.lock().ended.is_none()).then(|| {
        let leave = Arc::clone(&left);
        let ask = move |asked: Asked| leave.store(asked == Asked::End, Ordering::Relaxed);
        shown(&shared, View { follows: true, ..View::default() }, ask)
    });
    let screen = screen.flatten();
    let mut lines = Lines::default();
    let (mut news, mut since) = (0, Instant::now());
    let mut end = Followed::Left;
    while !left.load(Ordering::Relaxed) && !interrupt.asked() {
        let began = Instant::now();
        // Before its bundle is read: who had ended by then has written all that he will write.
        let gone = run.is_some_and(|run| run.ends_within(Duration::ZERO).unwrap_or(false));
        let mut now = look(dir)?;
        if now.events != news {
            (news, since) = (now.events, Instant::now());
        }
        let silent = since.elapsed();
        if now.ended.is_none() && silent > SILENCE {
            now.silent = Some(silent);
            // So that it is drawn, every second.
            now.events = now.events.wrapping_add(silent.as_secs());
        }
        let ended = now.ended.is_some();
        if screen.is_none() {
            lines.say(&now);
        }
        *shared.lock() = now;
        if ended || gone {
            end = if ended { Followed::Ended } else { Followed::Died };
            break;
        }
        let until = Instant::now() + rest(began.elapsed());
        while Instant::now() < until && !left.load(Ordering::Relaxed) && !interrupt.asked() {
            std::thread::sleep(STEP);
        }
    }
    drop(screen);
    Ok(end)
}

/// The output without a screen: a line when something begins or ends.
#[derive(Default)]
struct Lines {
    stages: Vec<Stage>,
    silent: bool,
}

impl Lines {
    fn say(&mut self, watched: &Watched) {
        self.stages.resize(watched.rows.len(), Stage::Waiting);
        let of = watched.rows.len();
        for (number, (row, before)) in watched.rows.iter().zip(&mut self.stages).enumerate() {
            if std::mem::replace(before, row.stage) == row.stage {
                continue;
            }
            let name = clean(&row.planned.name);
            let max = row.series.values().filter_map(tactus_watch::state::Series::max_ns).max();
            let what = match row.stage {
                Stage::Waiting => continue,
                Stage::Measuring => {
                    let time = |ns| human(Duration::from_nanos(ns));
                    format!("{} of {} measured", time(row.at_ns), time(row.planned.planned_ns))
                }
                Stage::Ended(_) => {
                    let figures = max.map(|max| format!(", max {} us", micro(Some(max))));
                    row.reason.clone().unwrap_or_else(|| format!("done{}", figures.unwrap_or_default()))
                }
            };
            say(format_args!("[{}/{of}] {name}: {what}", number + 1));
        }
        let silent = watched.silent.is_some();
        if silent && !self.silent {
            say("note: no news for half a minute: the run is between two scenarios, or has died");
        }
        self.silent = silent;
    }
}
