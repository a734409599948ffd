//! Runs that are kept under a name, and runs that are compared with one.

use std::path::{Path, PathBuf};

use tactus_bundle as bundle;
use tactus_model::bundle::Contents;
use tactus_model::text::quoted;
use tactus_report::compare::{Condition, Expected, LEAST_REPEATS, Margins, expected};
use tactus_report::units::clean;
use tactus_system::{Real, System, baselines_dir};

use super::compare::{self, Gated};
use crate::exit::Failure;
use crate::nearest;
use crate::newest;

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
    contents: Contents,
}

impl Base {
    /// The newest complete run of this name, or the bundle at this path. It is read before anything is measured.
    ///
    /// # Errors
    /// When the run does not exist, or cannot be read.
    pub fn find(name: &str) -> Result<Self, Failure> {
        let dir = directory(name)?;
        let path =
            if Real.exists(&dir.join(newest::MANIFEST)) { Some(dir.clone()) } else { newest::complete(&dir) };
        let path = path.ok_or_else(|| unknown(name, &dir))?;
        let contents = compare::reduced(&bundle::open(&path)?)?;
        Ok(Self { name: name.to_owned(), contents })
    }

    /// How many runs the comparison needs, in a sentence that is printed before they are made; `None`: the planned
    /// ones are enough.
    #[must_use]
    pub fn needs(&self, planned: usize) -> Option<String> {
        let base = Condition::new(self.name.clone(), vec![self.contents.clone()]);
        let name = clean(&self.name);
        let said = match expected(&base, &Margins::default()) {
            None => format!(
                "the baseline `{name}` has too few runs to show how much runs differ: the gate cannot \
                 decide; make it with `--repeat 10`"
            ),
            Some(Expected { scenario, quantity, runs: None, .. }) => format!(
                "runs of `{name}` differ too much: no number of them can decide whether {quantity} of {} \
                    became worse",
                clean(&scenario)
            ),
            Some(Expected { scenario, quantity, runs: Some(runs), base }) => {
                let runs = runs.max(LEAST_REPEATS);
                if planned >= runs && base >= runs {
                    return None;
                }
                format!(
                    "the gate needs about {runs} runs of each, because runs of `{name}` vary ({quantity} of \
                     {}); the baseline has {base}, and {planned} {} planned: use `--repeat {runs}`",
                    clean(&scenario),
                    if planned == 1 { "is" } else { "are" }
                )
            }
        };
        Some(format!("gate: {said}"))
    }

    /// Holds a run against it.
    pub fn against(self, mut new: Contents) -> Result<Gated, Failure> {
        Condition::reduce(&mut new);
        compare::gate((self.name, self.contents), ("this run".to_owned(), new))
    }
}

fn unknown(name: &str, dir: &Path) -> Failure {
    let beside = dir.parent().and_then(|all| Real.list(all).ok()).unwrap_or_default();
    let names: Vec<String> =
        beside.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    let all = match names.as_slice() {
        _ if name.contains('/') => "name a bundle, or a directory that contains a complete one".to_owned(),
        [] => format!("make it: `tactus run --repeat 10 --save-baseline {}`", quoted(name)),
        names => format!("the baselines are {}", names.join(", ")),
    };
    let hint = nearest::hint(name, names.iter().map(String::as_str), all);
    Failure::say(format!("there is no complete baseline `{name}` ({})", dir.display()), hint)
}
