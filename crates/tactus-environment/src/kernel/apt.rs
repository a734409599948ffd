//! The distribution's package manager, for this machine's architecture or for another one.

use std::path::Path;
use std::time::Duration;

use tactus_system::{Finished, Invocation, System};

use super::KernelError;
use super::arch::{OWN, debian};

const QUESTION: Duration = Duration::from_secs(60);
const LISTS: Duration = Duration::from_secs(10 * 60);

/// The package manager.
pub struct Apt<'a> {
    pub system: &'a dyn System,
    /// Its own name for the architecture.
    pub arch: String,
    /// Options that every call gets.
    options: Vec<String>,
}

impl<'a> Apt<'a> {
    /// A client for an architecture. For a foreign one the machine's package state stays untouched (`dpkg
    /// --add-architecture` would change what it installs). Its lists are fetched into `dir`, from the same sources
    /// and checked with the same keys, and are removed with it.
    ///
    /// # Errors
    /// When the lists cannot be fetched.
    pub fn new(
        system: &'a dyn System,
        arch: &str,
        dir: &Path,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, KernelError> {
        let mut apt = Self { system, arch: String::new(), options: Vec::new() };
        if arch == OWN {
            apt.arch = apt.run(&question(&["dpkg", "--print-architecture"]))?.text().trim().to_owned();
            return Ok(apt);
        }
        apt.arch = debian(arch).to_owned();
        for name in ["state/lists/partial", "cache/archives/partial"] {
            let dir = dir.join(name);
            system.make_dir(&dir).map_err(|error| failed(&format!("{}: {error}", dir.display()), None))?;
        }
        let settings = [
            format!("APT::Architecture={}", apt.arch),
            format!("APT::Architectures::={}", apt.arch),
            format!("Dir::State={}", dir.join("state").display()),
            format!("Dir::Cache={}", dir.join("cache").display()),
            "Dir::State::status=/dev/null".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
        ];
        apt.options = settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]).collect();
        progress(&format!(
            "fetching the package lists for {} (kept separate from those of this machine)",
            apt.arch
        ));
        apt.run(&apt.get(&["update"], LISTS))?;
        Ok(apt)
    }

    /// A call of apt-get.
    pub fn get(&self, words: &[&str], patience: Duration) -> Invocation {
        // As root, apt downloads as the user `_apt` by default. That user may not enter our directory, so apt would
        // warn and continue as root. Giving that user a directory is no remedy: the user could exchange a package
        // after the check and before root unpacks it. (`apt-get install` checks a second time, `apt-get download`
        // does not.)
        let own = ["apt-get", "-q", "-o", "APT::Sandbox::User=root"].into_iter();
        let words = own.chain(self.options.iter().map(String::as_str)).chain(words.iter().copied());
        Invocation::new(words).within(patience).with_env(("LC_ALL", "C"))
    }

    /// The answer from the package lists; empty without one.
    pub fn ask(&self, words: &[&str]) -> String {
        let all = ["apt-cache"].into_iter().chain(self.options.iter().map(String::as_str));
        let all: Vec<&str> = all.chain(words.iter().copied()).collect();
        let answer = self.system.run(&question(&all)).ok().filter(Finished::success);
        answer.map(|finished| finished.text()).unwrap_or_default()
    }

    /// Runs a command.
    ///
    /// # Errors
    /// When it fails, with its own words.
    pub fn run(&self, command: &Invocation) -> Result<Finished, KernelError> {
        let finished = self.system.run(command).map_err(|error| failed(&error.to_string(), None))?;
        if finished.success() {
            return Ok(finished);
        }
        let reason = format!("`{}` failed: {}", command.argv.join(" "), finished.words());
        Err(failed(&reason, Some("`apt-get update` updates the package lists; then try again")))
    }
}

/// A call whose output is parsed: it must be in English.
fn question(words: &[&str]) -> Invocation {
    Invocation::new(words.iter().copied()).within(QUESTION).with_env(("LC_ALL", "C"))
}

/// A failure with these words.
pub fn failed(reason: &str, hint: Option<&str>) -> KernelError {
    KernelError { reason: reason.to_owned(), hint: hint.map(str::to_owned) }
}
