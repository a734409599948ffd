//! Runs that are kept under a name, and runs that are compared with one.

use std::path::{Path, PathBuf};

use tactus_bundle as bundle;
use tactus_model::bundle::Contents;
use tactus_model::text::quoted;
use tactus_report::compare::{Condition, Expected, LEAST_REPEATS, Margins, expected, is_fit};
use tactus_report::units::clean;
use tactus_system::{Real, System, baselines_dir};

use super::compare::{self, Gated};
use crate::exit::Failure;
use crate::nearest;
use crate::newest;
use crate::say::say;

/// Where the runs of a baseline lie: each is a bundle.
///
/// # Errors
/// When it is no name, or there is no place for baselines.
pub fn directory(name: &str) -> Result<PathBuf, Failure> {
    if name.contains('/') {
        return Ok(name.into());
    }
    if name.is_empty() || name.starts_with('.') {
        return Err(Failure::say(
            format!("`{name}` is not a valid name of a baseline"),
            "use a word, as in `--save-baseline main`, or a directory: `--save-baseline ./baselines/main`",
        ));
    }
    let all = baselines_dir(&Real).map_err(|error| {
        Failure::new(error, "name a directory for it: `--save-baseline ./baselines/main`")
    })?;
    Ok(all.join(name))
}

/// A baseline that a run is compared with.
pub struct Base {
    name: String,
    sittings: Vec<Contents>,
}

/// The most sittings that a baseline is made of: the newest.
const SITTINGS: usize = 30;

impl Base {
    /// The newest complete runs of this name that measured the same, or the bundle at this path. They are read before
    /// anything is measured.
    ///
    /// # Errors
    /// When no such run exists, or one cannot be read.
    pub fn find(name: &str) -> Result<Self, Failure> {
        let dir = directory(name)?;
        let is_bundle = Real.exists(&dir.join(newest::MANIFEST));
        let paths = if is_bundle { vec![dir.clone()] } else { newest::all_complete(&dir, SITTINGS) };
        let mut sittings: Vec<Contents> = Vec::new();
        for path in &paths {
            let one = compare::reduced(&bundle::open(path)?)?;
            // After the plan was changed the baseline begins anew.
            if sittings.first().is_none_or(|newest| newest.plan.scenario == one.plan.scenario) {
                sittings.push(one);
            }
        }
        if sittings.is_empty() {
            return Err(unknown(name, &dir));
        }
        let others = paths.len() - sittings.len();
        if others > 0 {
            say(format_args!(
                "gate: {others} of {} runs of `{}` measured something else than the newest one, and do not count",
                paths.len(),
                clean(name)
            ));
        }
        let (fit, spoiled): (Vec<Contents>, Vec<Contents>) = sittings.into_iter().partition(is_fit);
        let name = name.to_owned();
        if fit.is_empty() {
            // The comparison says why.
            return Ok(Self { name, sittings: spoiled });
        }
        if !spoiled.is_empty() {
            say(format_args!(
                "gate: {} of {} runs of `{}` are incomplete or did not pass their self-test, and do not count",
                spoiled.len(),
                fit.len() + spoiled.len(),
                clean(&name)
            ));
        }
        Ok(Self { name, sittings: fit })
    }

    /// What the gate will be able to show with `planned` runs: a sentence that is printed before the run.
    #[must_use]
    pub fn needs(&self, planned: usize) -> String {
        let base = Condition::new(self.name.clone(), self.sittings.clone());
        let name = clean(&self.name);
        let said = match expected(&base, &Margins::default()) {
            Expected::TooFew { sittings, more } => format!(
                "`{name}` has {sittings} {} of {LEAST_REPEATS} runs or more: nothing is decided yet. Add {more}, on other \
                 days: `tactus run ... --repeat 8 --save-baseline {}`",
                if sittings == 1 { "sitting" } else { "sittings" },
                quoted(&self.name)
            ),
            Expected::Decides { .. } if planned < LEAST_REPEATS => format!(
                "{planned} {} too few for a sitting: `--repeat {LEAST_REPEATS}` or more decides",
                if planned == 1 { "run is" } else { "runs are" }
            ),
            Expected::Decides { scenario, quantity, ratio } => format!(
                "against the {} sittings of `{name}` this run shows {quantity} of {} to be a regression from {ratio:.2} \
                 times on (in 80 of 100 cases), and others from less",
                self.sittings.len(),
                clean(&scenario)
            ),
        };
        format!("gate: {said}")
    }

    /// Holds a run against it.
    pub fn against(self, mut new: Contents) -> Result<Gated, Failure> {
        Condition::reduce(&mut new);
        compare::gate((self.name, self.sittings), ("this run".to_owned(), new))
    }
}

fn unknown(name: &str, dir: &Path) -> Failure {
    let beside = dir.parent().and_then(|all| Real.list(all).ok()).unwrap_or_default();
    let names: Vec<String> =
        beside.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    let all = match names.as_slice() {
        _ if name.contains('/') => "name a bundle, or a directory that contains a complete one".to_owned(),
        [] => format!("make it: `tactus run --repeat 8 --save-baseline {}`", quoted(name)),
        names => format!("the baselines are {}", names.join(", ")),
    };
    let hint = nearest::hint(name, names.iter().map(String::as_str), all);
    Failure::say(format!("there is no complete baseline `{name}` ({})", dir.display()), hint)
}
