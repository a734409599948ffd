//! Leftovers of a run on the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tactus_system::{Real, cache_dir, state_dir};

/// Processes that carry the marker of a run.
pub fn marked(id: &str) -> Vec<u32> {
    let mark = format!("TACTUS_RUN={id}");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    })
    .collect()
}

/// The threads of a run, one in a line: its name, state, CPU, policy, and the time that it ran in the last second.
pub fn threads(id: &str) -> String {
    let dirs: Vec<PathBuf> = marked(id)
        .into_iter()
        .flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .collect();
    let read = || -> Vec<Option<(String, Vec<String>)>> {
        let of = |dir: &PathBuf| {
            let stat = fs::read_to_string(dir.join("stat")).ok()?;
            let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
            Some((name.to_owned(), rest.split_whitespace().map(str::to_owned).collect()))
        };
        dirs.iter().map(of).collect()
    };
    // Fields of proc(5), from the third on: state, utime and stime, processor, policy.
    let ticks = |fields: &[String]| {
        fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>()
    };
    let before = read();
    std::thread::sleep(Duration::from_secs(1));
    let mut lines = String::new();
    for (before, after) in before.iter().zip(read()) {
        let (Some((name, before)), Some((_, after))) = (before, after) else { continue };
        let ran = ticks(&after).saturating_sub(ticks(before));
        let [state, cpu, policy] = [0, 36, 38].map(|at| after.get(at).map_or("?", String::as_str));
        lines +=
            &format!("{name}: {state}, on CPU {cpu}, policy {policy}, ran {ran} ticks in the last second\n");
    }
    lines
}

/// Command lines that contain a word.
pub fn commands(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(word))
        .collect()
}

/// Waits until nothing of a run is left; else what is.
pub fn none_within(id: &str, patience: Duration) -> Result<(), String> {
    let until = Instant::now() + patience;
    loop {
        let left = all(id);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(left.join(", "));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn all(id: &str) -> Vec<String> {
    let mut left: Vec<String> = marked(id).iter().map(|pid| format!("process {pid}")).collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    left.extend(mounts.lines().filter(|line| line.contains(id)).map(|line| format!("mount {line}")));
    let names = [
        state_dir(&Real).unwrap().join(format!("{id}.jsonl")),
        cache_dir(&Real).unwrap().join("work").join(id),
    ];
    left.extend(names.iter().filter(|path| path.exists()).map(|path| path.display().to_string()));
    cgroups(Path::new("/sys/fs/cgroup"), id, &mut left);
    for place in
        ["/run/systemd/nspawn/propagate", "/run/systemd/nspawn/locks", "/run/lock/lxc", "/var/lib/lxc"]
    {
        let entries = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
        left.extend(
            entries.filter(|path| path.to_string_lossy().contains(id)).map(|path| path.display().to_string()),
        );
    }
    // Podman is asked last: it takes longest.
    if left.is_empty()
        && let Ok(output) = Command::new("podman").args(["ps", "-a", "--format", "{{.Names}}"]).output()
    {
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        left.extend(names.lines().filter(|name| name.contains(id)).map(|name| format!("container {name}")));
    }
    left
}

fn cgroups(dir: &Path, id: &str, left: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().contains(id) {
            left.push(format!("cgroup {}", entry.path().display()));
        }
        cgroups(&entry.path(), id, left);
    }
}
