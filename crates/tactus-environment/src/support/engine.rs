//! Common parts of Docker and Podman: containers with names, which an engine inspects and executes in.

use std::time::Duration;

use tactus_model::plan;
use tactus_system::{Invocation, System};

use super::{attach, cannot, text};
use crate::{OptionError, OptionKey, Running, Setting, StartError};

/// How long an engine may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The key for the user that runs the probe.
pub const USER: OptionKey = OptionKey {
    name: "user",
    about: "with `attach`: the user that runs the probe in the container, as `0` or `name:group`; default: \
the container's user",
};

/// Checks the keys that engines share.
///
/// # Errors
/// The first that is wrong.
pub fn check(spec: &plan::Environment) -> Result<(), OptionError> {
    text(spec, USER.name, "a user, as \"0\" or \"name:group\"").map(drop)
}

/// The first process of a container that runs, as this machine numbers it. `client`: the words that every command
/// begins with.
///
/// # Errors
/// When the container does not exist, or does not run, or not on this machine.
pub fn first_process(client: &[String], name: &str, system: &dyn System) -> Result<u32, StartError> {
    let tool = &client[0];
    let hint = Some(format!("name a running one; `{} ps` lists them", client.join(" ")));
    let asked = ["container", "inspect", "--format", "{{.State.Status}} {{.State.Pid}}", "--", name];
    let words = client.iter().map(String::as_str).chain(asked);
    let found = system
        .run(&Invocation::new(words).within(PATIENCE))
        .map_err(|error| cannot(&format!("{tool} cannot be queried about `{name}`"), error))?;
    if !found.success() {
        return Err(StartError {
            reason: format!("{tool} has no container `{name}`: {}", found.words()),
            hint,
        });
    }
    let text = found.text();
    let (state, pid) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    if state != "running" {
        return Err(StartError {
            reason: format!("the container `{name}` is not running: it is {state}"),
            hint,
        });
    }
    match pid.parse() {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err(StartError {
            reason: format!("{tool} does not report the first process of `{name}`"),
            hint: Some("attach on the machine that runs it".into()),
        }),
    }
}

/// Puts the probe into a container that runs and has the engine execute it there: in its cgroups and
/// namespaces, with its capabilities and filters. `wrap`: how a command of the engine is wrapped.
///
/// # Errors
/// When the probe cannot be put in or the engine cannot be started.
pub fn execute(
    setting: &Setting<'_>,
    client: &[String],
    wrap: impl FnOnce(u32, Vec<String>) -> Vec<String>,
) -> Result<Box<dyn Running>, StartError> {
    let name = setting.spec.attach.as_deref().unwrap_or_default();
    let pid = first_process(client, name, setting.system)?;
    let delivered = attach::deliver(setting, pid)?;
    let (marker, id) = setting.guardian.marker();
    let mut words = client.to_vec();
    words.extend(["exec".to_owned(), "-i".into(), format!("--env={marker}={id}")]);
    let user = text(setting.spec, USER.name, "a user").map_err(|error| cannot(USER.name, error))?;
    words.extend(user.map(|user| format!("--user={user}")));
    words.extend([name.to_owned(), delivered.inside.clone()]);
    let running = super::start(setting, Invocation::new(wrap(pid, words)), Vec::new(), Vec::new())?;
    Ok(attach::watched(setting, pid, running, delivered, Vec::new()))
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    fn asked(code: i32, stdout: &str, stderr: &str) -> Result<u32, StartError> {
        let machine = Memory::new().answer(&["docker", "container", "inspect"], code, stdout, stderr);
        first_process(&["docker".into()], "plc", &machine)
    }

    #[test]
    fn only_a_container_that_runs_here_has_a_first_process() {
        assert_eq!(asked(0, "running 4711\n", ""), Ok(4711));
        for (code, stdout, stderr, expected) in [
            (1, "[]\n", "Error: No such container: plc\n", "No such container"),
            (0, "exited 0\n", "", "it is exited"),
            (0, "paused 12\n", "", "it is paused"),
            (0, "running 0\n", "", "does not report"),
            (0, "running\n", "", "does not report"),
            (0, "", "", "is not running"),
        ] {
            let error = asked(code, stdout, stderr).unwrap_err();
            assert!(error.reason.contains(expected) && error.hint.is_some(), "{stdout}: {error}");
        }
    }
}
