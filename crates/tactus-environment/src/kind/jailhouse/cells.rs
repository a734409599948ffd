//! Cells and their states, from sysfs; or from what `jailhouse cell list` prints.

use std::fmt;
use std::path::Path;

use tactus_model::CpuSet;

use tactus_system::System;

/// Where Jailhouse shows itself.
pub const SYSFS: &str = "/sys/devices/jailhouse";

/// The state of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It runs and lets no other cell be made, changed or ended.
    Locked,
    /// It does not run.
    ShutDown,
    /// It said that it failed, or a CPU of it was stopped.
    Failed,
    /// Anything else, in Jailhouse's own words.
    Other(String),
}

impl State {
    fn of(text: &str) -> Self {
        match text.trim() {
            "running" => Self::Running,
            "running/locked" => Self::Locked,
            "shut down" => Self::ShutDown,
            "failed" => Self::Failed,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Whether code of the cell can run.
    pub fn runs(&self) -> bool {
        matches!(self, Self::Running | Self::Locked)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Locked => "running/locked",
            Self::ShutDown => "shut down",
            Self::Failed => "failed",
            Self::Other(words) => words,
        })
    }
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its number; 0 is the root cell.
    pub id: u32,
    /// Its name, as its configuration says.
    pub name: String,
    /// Its state.
    pub state: State,
    /// Its CPUs, as the machine numbers them.
    pub assigned: CpuSet,
    /// Those of them that were stopped for what they did.
    pub failed: CpuSet,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cell {} ({}): {}, CPUs {}", self.id, self.name, self.state, self.assigned)?;
        if !self.failed.is_empty() {
            write!(f, ", stopped CPUs {}", self.failed)?;
        }
        Ok(())
    }
}

/// Whether Jailhouse is enabled; `None` where its driver is not loaded.
pub fn enabled(system: &dyn System) -> Option<bool> {
    match system.text(&format!("{SYSFS}/enabled"))?.trim() {
        "1" => Some(true),
        _ => Some(false),
    }
}

/// Every cell, by its number.
pub fn all(system: &dyn System) -> Vec<Cell> {
    let dirs = system.list(Path::new(&format!("{SYSFS}/cells"))).unwrap_or_default();
    let mut cells: Vec<Cell> = dirs.iter().filter_map(|dir| cell(dir, system)).collect();
    cells.sort_by_key(|cell| cell.id);
    cells
}

/// The cell of this name.
pub fn named(name: &str, system: &dyn System) -> Option<Cell> {
    all(system).into_iter().find(|cell| cell.name == name)
}

fn cell(dir: &Path, system: &dyn System) -> Option<Cell> {
    let id = dir.file_name()?.to_str()?.parse().ok()?;
    let of = |file: &str| system.text(&dir.join(file).to_string_lossy());
    let cpus = |file: &str| of(file).and_then(|list| list.trim().parse().ok()).unwrap_or_default();
    Some(Cell {
        id,
        // Blanks at its beginning are its own: by its name it is found and ended.
        name: of("name")?.trim_end_matches('\n').to_owned(),
        state: State::of(&of("state")?),
        assigned: cpus("cpus_assigned_list"),
        failed: cpus("cpus_failed_list"),
    })
}

/// The words that the third column of the list may have; the longer before its beginning.
const STATES: [&str; 6] =
    ["running/locked", "running", "shut down", "failed", "Comm ABI mismatch", "invalid"];

/// Parses the output of `jailhouse cell list`: columns of 8, 24, 18, 24 and 24 characters, which a long name or list
/// pushes aside. Lines that are not cells are passed over.
pub fn parse_list(text: &str) -> Vec<Cell> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Cell> {
    let id = line.get(..8)?.trim_end().parse().ok()?;
    let rest = line.get(8..)?;
    // A name has at most 31 characters.
    let (at, state) = (24..=31).find_map(|at| {
        let column = rest.get(at..)?;
        STATES.iter().find(|state| column.starts_with(*state)).map(|state| (at, *state))
    })?;
    let name = rest[..at].trim_end();
    let columns = rest.get(at + state.len().max(18)..).or_else(|| rest.get(at + state.len()..))?;
    let (assigned, failed) = match columns.get(24..) {
        Some(failed) => (&columns[..24], failed),
        None => (columns, ""),
    };
    let cpus = |text: &str| text.trim().parse::<CpuSet>().ok();
    Some(Cell {
        id,
        name: name.to_owned(),
        state: State::of(state),
        assigned: cpus(assigned)?,
        failed: cpus(failed).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tactus_system::Memory;

    use super::*;

    const SHELL: &str = include_str!("../../../tests/fixtures/jailhouse/root-cell-shell.txt");
    const LOCKED: &str =
        include_str!("../../../tests/fixtures/jailhouse/root-cell-shell-locked-and-linux.txt");

    /// The output of every `cell list` in a transcript.
    fn lists(transcript: &str) -> Vec<Vec<String>> {
        let lists = transcript.split("# jailhouse cell list\n").skip(1);
        let cells = lists.map(|rest| parse_list(rest.split("[rc=").next().unwrap()));
        cells.map(|cells| cells.iter().map(Cell::to_string).collect()).collect()
    }

    #[test]
    fn the_lists_of_a_real_one_are_read() {
        let shell = lists(SHELL);
        assert_eq!(shell[0], ["cell 0 (qemu-arm64): running, CPUs 0-3"]);
        assert_eq!(
            shell[1],
            ["cell 0 (qemu-arm64): running, CPUs 0,2,3", "cell 1 (inmate-demo): running, CPUs 1"]
        );
        assert!(
            shell.iter().flatten().any(|cell| cell == "cell 1 (inmate-demo): failed, CPUs 1, stopped CPUs 1")
        );
        assert!(
            shell.iter().flatten().any(|cell| cell == "cell 1 (qemu-arm64-linux-demo): running, CPUs 2,3")
        );
        assert!(shell.last().unwrap().is_empty(), "nothing is printed when it is off");
        let locked = lists(LOCKED);
        assert_eq!(locked[0][1], "cell 1 (inmate-active): running/locked, CPUs 1");
        assert_eq!(locked[1][1], "cell 1 (inmate-active): shut down, CPUs 1");
    }

    #[test]
    fn a_long_name_pushes_the_columns_aside() {
        let name = "a-name-of-thirty-one-characters";
        let line = format!("{:<8}{name:<24}{:<18}{:<24}{:<24}", 12, "Comm ABI mismatch", "0-63", "");
        let cells = parse_list(&line);
        assert_eq!((cells[0].id, cells[0].name.as_str()), (12, name));
        assert_eq!((cells[0].state.to_string().as_str(), cells[0].assigned.len()), ("Comm ABI mismatch", 64));
    }

    #[test]
    fn sysfs_says_the_same() {
        let machine = Memory::new()
            .file("/sys/devices/jailhouse/enabled", "1\n")
            .file("/sys/devices/jailhouse/cells/0/name", "root\n")
            .file("/sys/devices/jailhouse/cells/0/state", "running\n")
            .file("/sys/devices/jailhouse/cells/0/cpus_assigned_list", "0,2-3\n")
            .file("/sys/devices/jailhouse/cells/0/cpus_failed_list", "\n")
            .file("/sys/devices/jailhouse/cells/1/name", "inmate-demo\n")
            .file("/sys/devices/jailhouse/cells/1/state", "failed\n")
            .file("/sys/devices/jailhouse/cells/1/cpus_assigned_list", "1\n")
            .file("/sys/devices/jailhouse/cells/1/cpus_failed_list", "1\n");
        assert_eq!(enabled(&machine), Some(true));
        let said: Vec<String> = all(&machine).iter().map(Cell::to_string).collect();
        assert_eq!(
            said,
            ["cell 0 (root): running, CPUs 0,2,3", "cell 1 (inmate-demo): failed, CPUs 1, stopped CPUs 1"]
        );
        assert!(!named("inmate-demo", &machine).unwrap().state.runs());
        assert_eq!((enabled(&Memory::new()), all(&Memory::new()).len()), (None, 0));
    }

    #[test]
    fn a_name_that_begins_with_a_blank_is_the_same_in_the_list_and_in_sysfs() {
        let name = " inmate demo";
        let line = format!("{:<8}{name:<24}{:<18}{:<24}{:<24}", 1, "running", "1", "");
        assert_eq!(parse_list(&line)[0].name, name);
        let machine = Memory::new()
            .file("/sys/devices/jailhouse/cells/1/name", format!("{name}\n"))
            .file("/sys/devices/jailhouse/cells/1/state", "running\n");
        assert!(named(name, &machine).is_some());
    }

    proptest! {
        #[test]
        fn no_list_makes_the_reader_panic(text in "(?s).{0,300}", id in 0u64..200_000_000_000) {
            parse_list(&text);
            parse_list(&format!("{id:<8}{text}"));
        }
    }
}
