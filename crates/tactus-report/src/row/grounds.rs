//! When a requirement may say anything, and what follows from its parts.

use tactus_model::Evidence;
use tactus_model::bundle::RowResult;
use tactus_model::document::{LimitEntry, Outcome, Side, Verdict};
use tactus_model::event::RowStatus;
use tactus_model::outcome::restart::{gaps_between, headline};

use super::name::under;
use super::summary::{ended_early, unrecorded};
use crate::units::{TOLD, beginning, clean, duration};

/// Whether a row was measured.
pub fn measured(result: &RowResult) -> Result<(), String> {
    let why = || result.reason.as_deref().unwrap_or_else(|| unrecorded(result));
    match result.status {
        RowStatus::Measured => Ok(()),
        RowStatus::Skipped => Err(format!("skipped: {}", why())),
        RowStatus::Failed => Err(format!("failed: {}", why())),
    }
}

/// The faults of a row that were never made, as the program that makes them reports; `None` without such a
/// fault. Such a row says nothing about its purpose.
pub fn never_made(result: &RowResult) -> Option<String> {
    let never = result.injected.iter().filter(|at| at.injected.times == Some(0));
    let named: Vec<String> =
        never.map(|at| format!("`{}` in {}", clean(&at.injected.kind), clean(&at.environment))).collect();
    (!named.is_empty()).then(|| format!("{} was never made (0 times)", named.join(" and ")))
}

/// Whether its evidence carries a verdict.
pub fn evidence(result: &RowResult) -> Result<(), String> {
    if result.damaged {
        return Err("the bundle is damaged: what is left of it decides nothing".into());
    }
    match result.evidence {
        Some(Evidence::BareMetal | Evidence::VirtualHost) => Ok(()),
        Some(Evidence::Emulated) => Err("emulated: this says nothing about hardware".into()),
        Some(Evidence::Imported) => Err("imported: no self-test, tactus did not measure it".into()),
        None => Err("the kind of evidence is unknown".into()),
    }
}

/// Why nothing may be said, or why what is kept does not pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    pub said: String,
    /// How much longer of the same would settle it, in ns; `None` if time alone would not.
    pub longer_ns: Option<u64>,
}

impl From<String> for Doubt {
    fn from(said: String) -> Self {
        Self { said, longer_ns: None }
    }
}

impl From<&str> for Doubt {
    fn from(said: &str) -> Self {
        said.to_owned().into()
    }
}

/// The name of a limit, before its number.
pub const fn asked(warns: bool) -> &'static str {
    if warns { "warning limit" } else { "required" }
}

/// A limit, and what was found of it in words.
pub struct Found {
    pub entry: LimitEntry,
    pub said: String,
    /// How much longer of the same would decide an open limit, in ns; `None` if time alone would not.
    pub longer_ns: Option<u64>,
    /// Whether it is broken, and would stay so however long the measurement.
    pub for_good: bool,
}

impl Found {
    /// A limit that time alone does not decide.
    pub const fn new(entry: LimitEntry, said: String) -> Self {
        Self { entry, said, longer_ns: None, for_good: false }
    }

    /// A limit that stays broken once it is, however little was measured.
    pub fn settled(entry: LimitEntry, said: String) -> Self {
        Self { for_good: entry.side == Side::Broken, ..Self::new(entry, said) }
    }
}

/// The verdict of all limits together. `base` says over what it was measured, `doubt` why a kept limit does
/// not pass, and `bound` what a pass says of time that was not measured. A row whose fault was never made
/// does not pass.
pub fn together(
    result: &RowResult,
    mut found: Vec<Found>,
    base: &str,
    doubt: Option<Doubt>,
    bound: &str,
) -> Verdict {
    let doubt = self::doubt(result, doubt);
    let is_broken = found.iter().any(|one| one.entry.side == Side::Broken && !one.entry.warns);
    let place = match result.evidence {
        Some(Evidence::VirtualHost) => ", as seen inside this virtual machine",
        _ => "",
    };
    let under = under(result).map(|under| format!(", {under}")).unwrap_or_default();
    // Each limit is also read by itself: in doubt, a kept one does not pass either, as if no other were
    // broken.
    for one in &mut found {
        let but = doubt.as_ref().filter(|_| one.entry.side == Side::Kept);
        let rest = but.map(|doubt| format!(", but {}", doubt.said)).unwrap_or_default();
        one.entry.reason = format!("{}{base}{under}{place}{rest}", one.said);
        if !rest.is_empty() && is_broken {
            one.entry.side = Side::Open;
        }
    }
    let sentences = |warns: bool, side: Side| -> Vec<&str> {
        let of = |one: &&Found| one.entry.warns == warns && one.entry.side == side;
        found.iter().filter(of).map(|one| one.said.as_str()).collect()
    };
    let (broken, open) = (sentences(false, Side::Broken), sentences(false, Side::Open));
    let kept = [sentences(false, Side::Kept), sentences(true, Side::Kept)].concat();
    let not_kept = [sentences(true, Side::Broken), sentences(true, Side::Open)].concat();
    let longer_ns = doubt.as_ref().and_then(|doubt| doubt.longer_ns);
    let (outcome, sentences, rest, longer_ns) = match doubt {
        _ if !broken.is_empty() => (Outcome::Fail, broken, String::new(), None),
        _ if !open.is_empty() => {
            // Time is enough where it decides all that is open.
            let decides = found.iter().filter(|one| one.entry.side == Side::Open && !one.entry.warns);
            let times: Option<Vec<u64>> = decides.map(|one| one.longer_ns).collect();
            let longer_ns = times.and_then(|times| times.into_iter().chain(longer_ns).max());
            (Outcome::Inconclusive, open, String::new(), longer_ns)
        }
        Some(doubt) => {
            (Outcome::Inconclusive, [kept, not_kept].concat(), format!(", but {}", doubt.said), longer_ns)
        }
        None if !not_kept.is_empty() => (Outcome::Warn, [not_kept, kept].concat(), String::new(), None),
        None => (Outcome::Pass, kept, bound.to_owned(), None),
    };
    let reason = format!("{}{base}{under}{place}{rest}", sentences.join("; "));
    Verdict { outcome, reason, longer_ns, limits: found.into_iter().map(|one| one.entry).collect() }
}

/// Why a kept limit does not pass: it ended early, its environment died, its fault was never made, or
/// `doubt`; `None` if it passes.
pub fn doubt(result: &RowResult, doubt: Option<Doubt>) -> Option<Doubt> {
    if ended_early(result) {
        let reason = result.reason.as_deref().unwrap_or("interrupted");
        let said = format!("it ended before its {}: {reason}", duration(result.planned_ns));
        let missing = result.planned_ns.saturating_sub(result.measured_ns);
        return Some(Doubt { said, longer_ns: Some(missing) });
    }
    let never = never_made(result).map(|never| format!("{never}: its effect is unknown").into());
    died(result).map(Doubt::from).or(never).or(doubt)
}

/// Says that the environment died while it was measured and was restarted; `None` if it lived. An environment
/// that dies has not met a deadline, whatever was measured before and after.
pub fn died(result: &RowResult) -> Option<String> {
    let first = result.restarts.first()?;
    let times = match result.restarts.len() {
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    let gap = duration(gaps_between(&result.restarts, 0, u64::MAX));
    Some(format!(
        "its environment died {times} ({}), was started again, and was not measured for {gap}",
        clean(&beginning(headline(&first.reason), TOLD))
    ))
}
