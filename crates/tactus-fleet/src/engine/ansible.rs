//! Ansible: a play gives each machine its job and forgets it (`async`, `poll: 0`), so that a broken link ends no job.
//! Another play asks how the jobs are and fetches finished bundles. The output is read line by line from our own
//! callback, which is written beside the plays. They are in a directory where only this user can write. The fleet's
//! directory may be writable for its machines, and Ansible runs every file beside a play.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tactus_system::{Invocation, fleets_dir, last_lines};

use super::script::{Places, job};
use super::{
    Engine, File, Machine, OptionEntry, Ready, Site, Submitted, TIME_S, client, limit, plain_dir,
    plain_options, time, unusable,
};
use crate::error::FleetError;
use crate::name::{as_told, is_plain, sha256};
use crate::order::Order;
use crate::pending::JobState;
use crate::row::Row;

/// The entry of the table.
pub static ENTRY: Ansible = Ansible;

/// The engine.
pub struct Ansible;

const OPTIONS: &[OptionEntry] = &[
    OptionEntry { name: "inventory", about: "the inventory; default: that of your ansible.cfg" },
    OptionEntry { name: "program", about: "tactus on the machines; default: `tactus`, by their PATH" },
    OptionEntry {
        name: "bring",
        about: "a tactus of this machine (a static one runs everywhere) to copy to the others",
    },
    OptionEntry {
        name: "dir",
        about: "where bundles are made on the machines; default: /var/lib/tactus-fleet",
    },
    OptionEntry { name: "become", about: "yes or no: whether jobs run as root; default: yes" },
    OptionEntry { name: "forks", about: "number of machines that Ansible contacts at once; default: 20" },
    OptionEntry {
        name: "time",
        about: "seconds after which Ansible ends a job; one that is not heard of for 10 min more counts as failed; \
default: 86400",
    },
    OptionEntry {
        name: "busy",
        about: "how long a job waits for another measurement of its machine; default: 1h",
    },
];

/// How long a play may take: a wave, machine by machine at worst.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Ansible under a limit on the size of each file that it writes, in units of 512 bytes (POSIX). A machine can send
/// any amount, whatever size it reports for its bundle.
const LIMITED: &str = "ulimit -f 2097152 && exec \"$@\"";
/// The exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;
/// How long one task may take on one machine, in seconds, or all others would wait for one that hangs. Plays have up to four.
const TASK_S: &str = "600";
/// The beginning of our callback's lines.
const MARK: &str = "TACTUS ";

/// The file with a wave's data for the plays.
const WAVE: &str = "wave.json";
/// Where Ansible finds our callback.
const PLUGINS: &str = "callback_plugins";

const START: &str = include_str!("ansible/start.yml");
const COLLECT: &str = include_str!("ansible/collect.yml");
const CALLBACK: &str = include_str!("ansible/tactus_lines.py");

impl Engine for Ansible {
    fn name(&self) -> &'static str {
        "ansible"
    }

    fn about(&self) -> &'static str {
        "Machines that are reached by ssh, with ansible-playbook. Each gets its job and runs it alone, so \
connections may break; bundles are fetched when they are finished. --select takes a pattern of hosts and \
groups, as `ansible PATTERN` does. The machines need Python, as for all of Ansible, and tactus, or --with \
bring=FILE."
    }

    fn options(&self) -> &'static [OptionEntry] {
        OPTIONS
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(15)
    }

    /// A machine that is switched off, or that never says that its job has ended, would run for ever.
    fn limit(&self, order: &Order) -> Option<Duration> {
        Some(limit(order))
    }

    fn check(&self, site: &Site<'_>) -> Result<(), FleetError> {
        plain_options(site.order, OPTIONS)?;
        plain_dir(&site.dir)?;
        let order = site.order;
        for (name, holds) in [
            ("become", order.option("become").is_none_or(|word| matches!(word, "yes" | "no"))),
            (
                "forks",
                order.option("forks").is_none_or(|word| word.parse::<u32>().is_ok_and(|forks| forks > 0)),
            ),
            ("time", time(order).is_some()),
            ("dir", order.option("dir").is_none_or(|word| word.starts_with('/'))),
        ] {
            if !holds {
                return Err(FleetError::new(
                    format!(
                        "--with {name}={}: this value is not valid",
                        order.option(name).unwrap_or_default()
                    ),
                    "`tactus explain ansible` lists the options and their values",
                ));
            }
        }
        // Ansible would take these for templates, and execute them.
        if let Some(word) = order.arguments.iter().find(|word| word.contains(['{', '}'])) {
            return Err(FleetError::new(
                format!("{word:?}: Ansible reads braces as a template"),
                "put it into the plan instead",
            ));
        }
        Ok(())
    }

    fn machines(&self, site: &Site<'_>) -> Result<Vec<Machine>, FleetError> {
        let mut argv = vec!["ansible".to_owned(), "--list-hosts".into()];
        argv.extend(site.order.option("inventory").map(|file| format!("--inventory={file}")));
        argv.extend(["--".to_owned(), site.order.select.clone()]);
        let said = client(site.system, &argv)?.text();
        hosts(&said)
    }

    fn render(&self, _site: &Site<'_>, _rows: &[&Row]) -> Vec<File> {
        let file = |name: &str, text: &str| File { name: name.into(), text: text.into() };
        vec![
            file("start.yml", START),
            file("collect.yml", COLLECT),
            file("callback_plugins/tactus_lines.py", CALLBACK),
        ]
    }

    fn submit(&self, site: &Site<'_>, rows: &[&Row]) -> Result<Vec<Submitted>, FleetError> {
        let usable: Vec<&Row> = rows.iter().copied().filter(|row| unusable(&row.machine).is_none()).collect();
        let said = if usable.is_empty() { Vec::new() } else { play(site, "start.yml", &usable)? };
        Ok(rows
            .iter()
            .map(|row| match unusable(&row.machine) {
                Some(reason) => Submitted::Refused(reason),
                None => submitted(&said, &row.machine),
            })
            .collect())
    }

    fn jobs(&self, site: &Site<'_>, rows: &[&Row]) -> Result<BTreeMap<String, JobState>, FleetError> {
        let said = play(site, "collect.yml", rows)?;
        Ok(rows.iter().map(|row| (row.key.clone(), job_state(&said, &row.machine))).collect())
    }

    fn fetch(&self, site: &Site<'_>, rows: &[&Row]) -> Result<BTreeMap<String, String>, FleetError> {
        // Asking for a job has already fetched its bundle.
        let there = |row: &Row| site.system.exists(&site.path(&row.archive()));
        let open: Vec<&Row> = rows.iter().copied().filter(|row| row.job.is_some() && !there(row)).collect();
        if open.is_empty() {
            return Ok(BTreeMap::new());
        }
        let said = play(site, "collect.yml", &open)?;
        let lost = open.iter().filter_map(|row| {
            let last = said.iter().rfind(|line| line.machine == row.machine && line.how != "ok")?;
            Some((row.key.clone(), last.words()))
        });
        Ok(lost.collect())
    }
}

/// A line of our callback.
#[derive(Debug, Deserialize)]
struct Line {
    machine: String,
    task: String,
    how: String,
    #[serde(default)]
    said: String,
    #[serde(default)]
    ansible_job_id: Option<String>,
    #[serde(default)]
    finished: Option<Value>,
    #[serde(default)]
    rc: Option<i64>,
}

impl Line {
    fn words(&self) -> String {
        format!("{}: {}", self.how, last_lines(&self.said, 2))
    }

    /// Whether the job has ended: 1, or true since Ansible 2.19.
    fn is_finished(&self) -> bool {
        matches!(&self.finished, Some(Value::Bool(true)))
            || self.finished.as_ref().and_then(Value::as_f64) == Some(1.0)
    }
}

/// The hosts of `ansible --list-hosts`: a line with their number, and one for each.
fn hosts(said: &str) -> Result<Vec<Machine>, FleetError> {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let number = lines
        .by_ref()
        .find_map(|line| line.strip_prefix("hosts (")?.strip_suffix("):")?.parse::<usize>().ok())
        .unwrap_or_default();
    let found: Vec<Machine> =
        lines.map(|name| Machine { name: name.to_owned(), ready: Ready::Idle }).collect();
    if found.len() == number {
        return Ok(found);
    }
    Err(FleetError::new(
        format!("Ansible reports {number} hosts but names {}", found.len()),
        "a name in the inventory breaks its list: `ansible --list-hosts PATTERN` shows it",
    ))
}

/// Plays a book for these machines and has the lines of our callback.
fn play(site: &Site<'_>, book: &str, rows: &[&Row]) -> Result<Vec<Line>, FleetError> {
    let order = site.order;
    let dir = written(site, rows).map_err(|error| {
        FleetError::new(
            format!("the files for Ansible cannot be written: {error}"),
            "they go to a directory that only you can write to, beside the records of your fleets: set HOME \
                or XDG_DATA_HOME",
        )
    })?;
    let mut argv: Vec<String> = ["sh", "-c", LIMITED, "sh", "ansible-playbook"].map(Into::into).into();
    argv.extend(order.option("inventory").map(|file| format!("--inventory={file}")));
    argv.push(format!("--forks={}", order.option("forks").unwrap_or("20")));
    argv.push(format!("--extra-vars=@{}", dir.join(WAVE).display()));
    argv.push(dir.join(book).display().to_string());
    let plugins = dir.join(PLUGINS).display().to_string();
    let command = Invocation::new(argv.clone())
        .with_env(("ANSIBLE_STDOUT_CALLBACK", "tactus_lines"))
        .with_env(("ANSIBLE_CALLBACK_PLUGINS", &plugins))
        .with_env(("ANSIBLE_RETRY_FILES_ENABLED", "0"))
        .with_env(("ANSIBLE_NOCOLOR", "1"))
        .with_env(("ANSIBLE_TASK_TIMEOUT", TASK_S))
        .within(PATIENCE);
    let none = |why: &str| {
        let hint = "install ansible-core, or add it to the PATH";
        FleetError::new(format!("ansible-playbook: {why}"), hint)
    };
    let finished = site.system.run(&command).map_err(|error| none(&error.to_string()))?;
    if finished.code == Some(NOT_FOUND) {
        return Err(none(&finished.words()));
    }
    let lines: Vec<Line> = finished
        .text()
        .lines()
        .filter_map(|line| serde_json::from_str(line.trim().strip_prefix(MARK)?).ok())
        .collect();
    // Machines that fail or cannot be reached are no failure of the play: their lines say so.
    if lines.is_empty() { Err(FleetError::client(&argv[4..], &finished.words())) } else { Ok(lines) }
}

/// Where the plays of a fleet are written, each time anew.
fn own_dir(site: &Site<'_>) -> io::Result<PathBuf> {
    let name = format!("play-{}", sha256(site.dir.as_os_str().as_encoded_bytes()));
    Ok(fleets_dir(site.system)?.join(name))
}

/// Writes all that is played for these machines, and says where.
fn written(site: &Site<'_>, rows: &[&Row]) -> io::Result<PathBuf> {
    let dir = own_dir(site)?;
    site.system.make_own_dir(&dir)?;
    site.system.make_own_dir(&dir.join(PLUGINS))?;
    for file in Ansible.render(site, rows) {
        site.system.install(&dir.join(&file.name), file.text.as_bytes(), 0o600)?;
    }
    site.system.install(&dir.join(WAVE), &serde_json::to_vec_pretty(&wave(site, rows))?, 0o600)?;
    Ok(dir)
}

/// The data of these machines for the plays. Names are keys, which Ansible takes for nothing else; values are ours.
fn wave(site: &Site<'_>, rows: &[&Row]) -> Value {
    let order = site.order;
    let by_machine = |value: &dyn Fn(&Row) -> Value| -> Value {
        rows.iter().map(|row| (row.machine.clone(), value(row))).collect::<serde_json::Map<_, _>>().into()
    };
    let place = |row: &Row| {
        let dir = order.option("dir").unwrap_or("/var/lib/tactus-fleet").trim_end_matches('/');
        format!("{dir}/{}/{}", order.id, row.key)
    };
    let words = |row: &Row| {
        let place = place(row);
        let brought = format!("{place}/tactus");
        let program = match order.option("bring") {
            Some(_) => brought.as_str(),
            None => order.option("program").unwrap_or("tactus"),
        };
        let (plan, bundle) = (format!("{place}/plan.toml"), format!("{place}/bundle"));
        let archive = format!("{place}/bundle.tar.gz");
        job(order, program, &Places { plan: &plan, bundle: &bundle, home: None, archive: Some(&archive) })
    };
    // The id of the job comes from a machine: it is not trusted.
    let jid = |row: &Row| row.job.clone().filter(|jid| is_plain(jid)).unwrap_or_else(|| "0".into());
    let incoming = |row: &Row| site.path(&row.archive()).display().to_string();
    json!({
        "tactus_id": order.id,
        "tactus_machines": rows.iter().map(|row| &row.machine).collect::<Vec<_>>(),
        "tactus_become": order.option("become") != Some("no"),
        "tactus_bring": order.option("bring").map(absolute).unwrap_or_default(),
        "tactus_plan": site.path("plan.toml").display().to_string(),
        "tactus_time": time(order).unwrap_or(TIME_S),
        "tactus_places": by_machine(&|row| place(row).into()),
        "tactus_words": by_machine(&|row| words(row).into()),
        "tactus_names": by_machine(&|row| as_told(&row.machine).into()),
        "tactus_jobs": by_machine(&|row| jid(row).into()),
        "tactus_incoming": by_machine(&|row| incoming(row).into()),
    })
}

/// Plays look for files beside themselves, and the user means those of his directory.
fn absolute(file: &str) -> String {
    std::path::absolute(Path::new(file)).map_or_else(|_| file.to_owned(), |path| path.display().to_string())
}

fn submitted(said: &[Line], machine: &str) -> Submitted {
    let Some(last) = said.iter().rfind(|line| line.machine == machine) else {
        return Submitted::Away("Ansible reports nothing about it".into());
    };
    match (last.how.as_str(), &last.ansible_job_id) {
        ("ok", Some(jid)) if last.task == "Measure" && is_plain(jid) => Submitted::As(jid.clone()),
        ("unreachable", _) => Submitted::Away(last.words()),
        _ => Submitted::Refused(format!("{}: {}", last.task, last.words())),
    }
}

fn job_state(said: &[Line], machine: &str) -> JobState {
    let of =
        |wanted: &dyn Fn(&Line) -> bool| said.iter().rfind(|line| line.machine == machine && wanted(line));
    if let Some(lost) = of(&|line| line.how == "unreachable") {
        // The job continues without us.
        return JobState::Running(Some(lost.words()));
    }
    match of(&|line| line.task == "Ask") {
        Some(line) if line.is_finished() => match line.rc {
            Some(0) => JobState::Ended("exit 0".into()),
            Some(code) => JobState::Ended(format!("exit {code}: {}", last_lines(&line.said, 2))),
            None => JobState::Ended(last_lines(&line.said, 2)),
        },
        Some(line) if line.finished.is_some() => JobState::Running(None),
        Some(line) => JobState::Ended(line.words()),
        None => JobState::Running(Some("Ansible reports nothing about it".into())),
    }
}

#[cfg(test)]
mod tests;
