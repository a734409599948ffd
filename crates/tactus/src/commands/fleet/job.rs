//! `tactus fleet job`: the command of a job on a machine, for every engine. It is safe to repeat: a half-done bundle
//! is resumed, a finished one is reported once more, one that was brought home is left alone.

use std::io;
use std::path::Path;

use tactus_fleet::{armor, is_complete, pack};
use tactus_system::{Directory, Real, System};

use super::plan;
use crate::cli::FleetJob;
use crate::commands::run;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

pub fn job(arguments: &FleetJob) -> Result<Exit, Failure> {
    if let Some(root) = &arguments.join {
        leave_group(root)?;
    }
    if arguments.home.as_deref().is_some_and(is_finished) {
        say("the bundle of this machine was already fetched: there is nothing left to do");
        return Ok(Exit::Good);
    }
    set_aside(&arguments.bundle)?;
    let exit = if is_finished(&arguments.bundle) {
        say("the bundle of this machine is already finished");
        Exit::Good
    } else {
        measured(arguments)?
    };
    // It may have been brought home in the meantime.
    let finished = is_finished(&arguments.bundle) || arguments.home.as_deref().is_some_and(is_finished);
    if !finished {
        return Ok(if exit == Exit::Unable { exit } else { Exit::Inconclusive });
    }
    if let Some(file) = &arguments.archive {
        let sum = archive(&arguments.bundle, file)?;
        if let Some(word) = &arguments.word {
            Real.write(word, armor::archive_word(&sum).as_bytes())?;
        }
    }
    if let Some(file) = &arguments.log {
        print(&arguments.bundle, file)?;
    }
    // A limit that is broken, and one that cannot be judged, are in the bundle; an engine would take them for a job that
    // failed.
    Ok(match exit {
        Exit::Good | Exit::Findings | Exit::Inconclusive => Exit::Good,
        Exit::Unable => Exit::Unable,
    })
}

fn measured(arguments: &FleetJob) -> Result<Exit, Failure> {
    is_given_out(&arguments.plan, arguments.plan_sha256.as_deref())?;
    let words = plan::arguments(&arguments.plan, &arguments.bundle, arguments.wait, &arguments.arguments)?;
    if let Some(above) = arguments.bundle.parent() {
        output::directory(above)?;
    }
    Ok(run::run(&words, false).unwrap_or_else(|failure| failure.report()))
}

/// Refuses another plan than the one that this job was made for: it can have commands, and others may write where it lies.
fn is_given_out(plan: &str, sum: Option<&str>) -> Result<(), Failure> {
    let Some(sum) = sum else { return Ok(()) };
    let (_, source) = run::named(plan)?;
    if tactus_fleet::sha256(source.text.as_bytes()) == sum {
        return Ok(());
    }
    Err(Failure::say(
        format!("{plan}: this is not the plan of this job"),
        "check who can write there; the same `tactus fleet run` restores the fleet's plan",
    ))
}

fn is_finished(bundle: &Path) -> bool {
    let Ok(dir) = Directory::open(bundle) else { return false };
    tactus_bundle::manifest(&dir).is_ok_and(|manifest| is_complete(&manifest))
}

/// Renames a directory that cannot be used. Without a manifest, a bundle that was cut off cannot be resumed. With
/// wrong checksums, a finished bundle cannot be brought home.
fn set_aside(bundle: &Path) -> Result<(), Failure> {
    let Ok(dir) = Directory::open(bundle) else { return Ok(()) };
    let has_manifest = dir.entry("manifest.json").is_ok();
    let holds = !is_finished(bundle) || tactus_bundle::verify(&dir).is_ok();
    if dir.names()?.is_empty() || (has_manifest && holds) {
        return Ok(());
    }
    let aside = (1u32..).map(|n| {
        let mut name = bundle.as_os_str().to_owned();
        // No machine's file is called so: in their names `=` stands before its two digits.
        name.push(format!("=.cut-{n}"));
        name
    });
    let free = aside.into_iter().find(|name| !Real.exists(Path::new(name))).unwrap_or_default();
    Ok(Real.rename(bundle, Path::new(&free))?)
}

/// The bundle as one file; its SHA-256, of what was written and not of what lies there, where others may write.
fn archive(bundle: &Path, file: &Path) -> Result<String, Failure> {
    let dir = Directory::open(bundle)?;
    let name = file.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let above = output::directory(file.parent().unwrap_or(Path::new("")))?;
    let mut sum = String::new();
    above.install_with(name, 0o600, |out| {
        sum = pack::pack(&dir, pack::Summed::new(out))?.sum();
        io::Result::Ok(())
    })?;
    Ok(sum)
}

/// The bundle as text on stdout; its manifest where the engine keeps a separate word.
fn print(bundle: &Path, file: &Path) -> Result<(), Failure> {
    let dir = Directory::open(bundle)?;
    let (text, word) = armor::written(&dir)?;
    output::data(&text)?;
    Ok(Real.write(file, word.as_bytes())?)
}

/// Moves this process to the root of a controller.
fn leave_group(root: &Path) -> Result<(), Failure> {
    let file = root.join("cgroup.procs");
    if !Real.exists(&file) {
        // With cgroup v2 (one hierarchy of all controllers) groups have no separate real-time budget.
        return Ok(());
    }
    Real.write(&file, b"0").map_err(|error| {
        Failure::say(
            format!("{}: {error}", file.display()),
            "the pod must be privileged, and must mount the node's /sys/fs/cgroup",
        )
    })
}
