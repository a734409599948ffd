//! Slurm: one batch job per node, `sbatch --nodelist=NODE --exclusive --requeue`. The fleet's directory is on a file system
//! that the nodes share, so that bundles are home when they are finished.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::script::{Places, job, line};
use super::{
    Engine, File, Machine, OptionEntry, Ready, Site, Submitted, client, plain_dir, plain_options, ran,
    unusable,
};
use crate::error::FleetError;
use crate::name::{as_told, quoted};
use crate::pending::JobState;
use crate::row::Row;

/// The entry of the table.
pub static ENTRY: Slurm = Slurm;

/// The engine.
pub struct Slurm;

const OPTIONS: &[OptionEntry] = &[
    OptionEntry { name: "program", about: "tactus on the nodes; default: `tactus`, by their PATH" },
    OptionEntry { name: "account", about: "the account to charge" },
    OptionEntry { name: "qos", about: "the quality of service" },
    OptionEntry { name: "time", about: "the limit of each job's time; default: the partition's" },
    OptionEntry { name: "reservation", about: "a reservation that the nodes are in" },
    OptionEntry {
        name: "busy",
        about: "how long a job waits for another measurement of its node; default: 1h",
    },
    OptionEntry {
        name: "cache",
        about: "TACTUS_CACHE_DIR of the jobs, for users without a home on the nodes",
    },
];

/// The separator of columns: no state and no name of a node contains it.
const COLUMN: char = '|';

impl Engine for Slurm {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn about(&self) -> &'static str {
        "One batch job per node, exclusive and requeued, by sbatch, squeue and sinfo. Its --select takes \
`all`, or words separated by blanks, all of which must match: `partition=NAME`, `feature=NAME`, `nodes=LIST` \
as in n[1-4]. FLEET must be on a file system that the nodes share."
    }

    fn options(&self) -> &'static [OptionEntry] {
        OPTIONS
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn shares_files(&self) -> bool {
        true
    }

    fn check(&self, site: &Site<'_>) -> Result<(), FleetError> {
        plain_options(site.order, OPTIONS)?;
        plain_dir(&site.dir)?;
        Selection::of(&site.order.select).map(drop)
    }

    fn machines(&self, site: &Site<'_>) -> Result<Vec<Machine>, FleetError> {
        let selection = Selection::of(&site.order.select)?;
        // The reason comes last, because it may contain any text.
        let mut argv = words(&["sinfo", "--noheader", "--Node", "--format=%N|%T|%f|%E"]);
        argv.extend(selection.partition.iter().map(|name| format!("--partition={name}")));
        argv.extend(selection.nodes.iter().map(|list| format!("--nodes={list}")));
        let said = client(site.system, &argv)?.text();
        Ok(machines(&said, selection.feature.as_deref()))
    }

    fn render(&self, site: &Site<'_>, rows: &[&Row]) -> Vec<File> {
        rows.iter().map(|row| File { name: format!("{}.sh", row.key), text: batch(site, row) }).collect()
    }

    fn submit(&self, site: &Site<'_>, rows: &[&Row]) -> Result<Vec<Submitted>, FleetError> {
        // A job that was made before this side could write it down is found by its name.
        let known = named(site)?;
        rows.iter()
            .map(|row| {
                if let Some(reason) = unusable(&row.machine) {
                    return Ok(Submitted::Refused(reason));
                }
                if let Some((id, _)) =
                    known.get(&row.key).filter(|(_, state)| !matches!(state, JobState::Ended(_)))
                {
                    return Ok(Submitted::As(id.clone()));
                }
                let script = site.word(&format!("objects/{}.sh", row.key));
                let finished = ran(site.system, &words(&["sbatch", "--parsable", &script]))?;
                let text = finished.text();
                // With several clusters it is ID;CLUSTER.
                let id = text.trim().split(';').next().unwrap_or_default();
                Ok(if finished.success() && !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) {
                    Submitted::As(id.to_owned())
                } else {
                    Submitted::Refused(format!("sbatch: {}", finished.words()))
                })
            })
            .collect()
    }

    fn jobs(&self, site: &Site<'_>, rows: &[&Row]) -> Result<BTreeMap<String, JobState>, FleetError> {
        let known = queue(site)?;
        let mut states = BTreeMap::new();
        for row in rows {
            // By its number: any user may choose the name of a job.
            let own = row.job.as_ref().and_then(|job| known.get(job));
            let state = match own {
                Some((name, state)) if *name == job_name(site, &row.key) => state.clone(),
                _ => remembered(site, row),
            };
            states.insert(row.key.clone(), state);
        }
        Ok(states)
    }

    fn fetch(&self, _site: &Site<'_>, _rows: &[&Row]) -> Result<BTreeMap<String, String>, FleetError> {
        Ok(BTreeMap::new())
    }
}

/// The value of `--select`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Selection {
    partition: Option<String>,
    feature: Option<String>,
    nodes: Option<String>,
}

impl Selection {
    fn of(text: &str) -> Result<Self, FleetError> {
        let mut selection = Self::default();
        for word in text.split_whitespace() {
            let (what, value) = word.split_once('=').unwrap_or(("", word));
            let place = match what {
                "partition" => &mut selection.partition,
                "feature" => &mut selection.feature,
                "nodes" => &mut selection.nodes,
                "" if word == "all" => continue,
                _ => {
                    return Err(FleetError::new(
                        format!("--select: `{word}` chooses no nodes of Slurm"),
                        "use all, partition=NAME, feature=NAME, nodes=LIST, or several with blanks between \
                            them",
                    ));
                }
            };
            let inner = |c: char| c.is_ascii_alphanumeric() || "_-.,[]".contains(c);
            if value.is_empty() || value.starts_with('-') || !value.chars().all(inner) {
                return Err(FleetError::new(
                    format!("--select: {what}={value:?} is not a name or list of Slurm"),
                    "as in partition=lab, feature=rt, nodes=n[1-4]",
                ));
            }
            *place = Some(value.to_owned());
        }
        Ok(selection)
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The nodes of sinfo's lines: one that is in several partitions stands there several times.
fn machines(said: &str, feature: Option<&str>) -> Vec<Machine> {
    let mut found: Vec<Machine> = Vec::new();
    for line in said.lines() {
        let mut columns = line.splitn(4, COLUMN);
        let (Some(name), Some(state), Some(features)) = (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let reason = columns.next().unwrap_or_default().trim();
        let has = |feature: &str| features.split([',', '&']).any(|found| found.trim() == feature);
        if feature.is_some_and(|feature| !has(feature)) || found.iter().any(|machine| machine.name == name) {
            continue;
        }
        found.push(Machine { name: name.into(), ready: readiness(state.trim(), reason) });
    }
    found
}

/// The readiness of a node, from its state as sinfo writes it, with its flags. `*` does not answer; `~` and `#` are
/// powered down and up; `$` is in maintenance; `@` and `^` are rebooted; `!` and `%` are powered down.
fn readiness(state: &str, reason: &str) -> Ready {
    let base = state.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
    let said = || if matches!(reason, "" | "none") { state.to_owned() } else { format!("{state}: {reason}") };
    if state.ends_with('*') {
        return Ready::Away(if said() == state { format!("{state}: it does not answer") } else { said() });
    }
    match base {
        "idle" => Ready::Idle,
        "mixed" | "allocated" | "completing" | "reserved" | "planned" | "powering_up" | "powered_down"
        // The controller has just begun to ask it.
        | "unknown" => {
            Ready::Busy(said())
        }
        _ => Ready::Away(said()),
    }
}

/// The name of a machine's job; of this user's no other one begins so.
fn job_name(site: &Site<'_>, key: &str) -> String {
    format!("tactus-{}-{key}", site.order.id)
}

/// The jobs of this fleet that this user has given to Slurm, by the key of their machines: number and state. Of several of one
/// machine the last one.
fn named(site: &Site<'_>) -> Result<BTreeMap<String, (String, JobState)>, FleetError> {
    let prefix = job_name(site, "");
    let mut jobs: BTreeMap<String, (String, JobState)> = BTreeMap::new();
    for (id, (name, state)) in queue(site)? {
        let (Some(key), Ok(number)) = (name.strip_prefix(&prefix), id.parse::<u64>()) else { continue };
        let later = |(found, _): &(String, JobState)| found.parse::<u64>().is_ok_and(|found| found > number);
        if !jobs.get(key).is_some_and(later) {
            jobs.insert(key.to_owned(), (id, state));
        }
    }
    Ok(jobs)
}

/// Slurm's jobs by their number, with name and state.
fn queue(site: &Site<'_>) -> Result<BTreeMap<String, (String, JobState)>, FleetError> {
    // Only this user's jobs: the names of other users' jobs may contain any text, even lines.
    let argv = words(&["squeue", "--noheader", "--states=all", "--format=%i|%j|%T|%r", "--me"]);
    let said = client(site.system, &argv)?.text();
    let columns = said.lines().filter_map(|line| {
        let columns: Vec<&str> = line.trim().splitn(4, COLUMN).collect();
        let &[id, name, state, reason] = columns.as_slice() else { return None };
        Some((id.to_owned(), (name.to_owned(), job_state(state, reason))))
    });
    Ok(columns.collect())
}

fn job_state(state: &str, reason: &str) -> JobState {
    let said =
        || if matches!(reason, "" | "None") { state.to_owned() } else { format!("{state} ({reason})") };
    match state {
        "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT" | "SUSPENDED"
        | "RESV_DEL_HOLD" => JobState::Waiting(said()),
        "RUNNING" => JobState::Running(None),
        "COMPLETING" | "CONFIGURING" | "STAGE_OUT" | "RESIZING" | "SIGNALING" | "STOPPED" => {
            JobState::Running(Some(said()))
        }
        _ => JobState::Ended(said()),
    }
}

/// How a job ended that the controller has forgotten (MinJobAge, 300 s): only accounting knows, where there is any.
fn remembered(site: &Site<'_>, row: &Row) -> JobState {
    let Some(id) = &row.job else { return JobState::Ended("it has no job".into()) };
    let argv = words(&[
        "sacct",
        "--noheader",
        "--parsable2",
        "--allocations",
        "--format=State,ExitCode",
        "--jobs",
        id,
    ]);
    let said = ran(site.system, &argv).ok().filter(tactus_system::Finished::success);
    let text = said.map(|finished| finished.text()).unwrap_or_default();
    match text.lines().last().and_then(|line| line.split_once(COLUMN)) {
        // `CANCELLED by 0`.
        Some((state, code)) if !state.is_empty() => {
            job_state(state.split(' ').next().unwrap_or(state), &format!("exit {code}"))
        }
        _ => JobState::Ended(format!("Slurm no longer knows job {id}, and keeps no accounting")),
    }
}

/// The batch script. It contains its options, so that `sbatch FILE` by hand gives the same job. The script opens the
/// file for the job's output itself, because sbatch expands patterns in the name of an output file.
fn batch(site: &Site<'_>, row: &Row) -> String {
    let order = site.order;
    let mut text = format!(
        "#!/bin/sh\n# tactus: the fleet {} on one node; safe to repeat: sbatch {}.sh\n",
        order.id, row.key
    );
    let mut option = |name: &str, value: &str| {
        let _ = if value.is_empty() {
            writeln!(text, "#SBATCH --{name}")
        } else {
            writeln!(text, "#SBATCH --{name}={value}")
        };
    };
    option("job-name", &job_name(site, &row.key));
    option("nodes", "1");
    if unusable(&row.machine).is_none() {
        option("nodelist", &row.machine);
    } else {
        // No node has this name: a script that is given to sbatch by hand starts nowhere else.
        option("nodelist", "no-such-node");
    }
    option("exclusive", "");
    option("requeue", "");
    option("export", "NIL");
    option("output", "/dev/null");
    if let Some(partition) = Selection::of(&order.select).ok().and_then(|selection| selection.partition) {
        option("partition", &partition);
    }
    for name in ["account", "qos", "time", "reservation"] {
        if let Some(value) = order.option(name) {
            option(name, value);
        }
    }
    let path = |name: &str| site.word(&format!("{name}/{}", row.key));
    let (bundle, home) = (path("incoming"), path("bundles"));
    let places = Places { plan: &site.word("plan.toml"), bundle: &bundle, home: Some(&home), archive: None };
    let _ = writeln!(text, "exec >>{} 2>&1", quoted(&format!("{}.log", path("log"))));
    let _ = writeln!(text, "TACTUS_MACHINE={}\nexport TACTUS_MACHINE", quoted(&as_told(&row.machine)));
    if let Some(cache) = order.option("cache") {
        let _ = writeln!(text, "TACTUS_CACHE_DIR={}\nexport TACTUS_CACHE_DIR", quoted(cache));
    }
    let words = job(order, order.option("program").unwrap_or("tactus"), &places);
    let _ = writeln!(text, "exec {}", line(&words));
    text
}

#[cfg(test)]
mod tests;
