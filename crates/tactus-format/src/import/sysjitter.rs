//! The table of sysjitter: a column for each CPU.

use std::collections::BTreeMap;
use std::io::Read;

use super::conditions::{Conditions, is_command};
use super::recording::{Rows, Stated};
use super::text::{Lines, MOST_IDLE, decimal, short, too_idle};
use super::{ImportError, Recording, Values, runs};
use crate::lines::MOST_THREADS;

/// Lines that it must have, and those that it may.
const NEEDED: [&str; 3] = ["core_i", "int_n", "int_max(ns)"];
const USED: [&str; 4] = ["threshold(ns)", "runtime(ns)", "int_min(ns)", "int_mean(ns)"];

/// Whether a line is sysjitter's.
pub(super) fn is_line(line: &str) -> bool {
    line.starts_with("int_n_per_sec:") || line.starts_with("int_max(ns):") || line.starts_with("core_i:")
}

/// Reads one.
pub(super) fn read<R: Read>(lines: Lines<R>) -> Result<Vec<Recording>, ImportError> {
    runs::each(lines, one)
}

fn one<R: Read>(lines: &mut Lines<R>) -> Result<Vec<Recording>, ImportError> {
    let (mut table, mut conditions, mut idle): (BTreeMap<&str, Vec<u64>>, _, u64) =
        (BTreeMap::new(), Conditions::default(), 0);
    while let Some(line) = lines.next()? {
        let found = line.split_once(':').and_then(|(name, numbers)| {
            let name = NEEDED.into_iter().chain(USED).find(|known| *known == name.trim())?;
            Some((name, numbers))
        });
        let is_whole = NEEDED.into_iter().all(|name| table.contains_key(name));
        let again = found.is_some_and(|(name, _)| table.contains_key(name));
        if is_whole && (again || is_command("sysjitter", line)) {
            lines.again();
            break;
        }
        let Some((name, numbers)) = found else {
            conditions.line("sysjitter", line);
            idle += 1;
            if idle > MOST_IDLE {
                return Err(lines.error(too_idle()));
            }
            continue;
        };
        let numbers: Option<Vec<u64>> = numbers.split_whitespace().map(|number| decimal(number, 1)).collect();
        let numbers = numbers.filter(|numbers| numbers.len() <= MOST_THREADS as usize);
        let numbers = numbers.ok_or_else(|| format!("cut or damaged: `{}`", short(line)));
        let numbers = numbers.map_err(|what| lines.error(what))?;
        if table.insert(name, numbers).is_some() {
            return Err(lines.error("this line appears twice, and the table is not complete"));
        }
    }
    if let Some(name) = NEEDED.into_iter().find(|name| !table.contains_key(name)) {
        return Err(lines.error(format!("the file ends before `{name}:`")));
    }
    let columns = table["core_i"].len();
    if let Some((name, own)) = table.iter().find(|(_, own)| own.len() != columns) {
        return Err(ImportError::whole(format!("`{name}:` has {} numbers for {columns} CPUs", own.len())));
    }
    let mut recording = Recording::of("sysjitter", Values::Gaps);
    for column in 0..columns {
        let of = |name: &str| table.get(name).map(|own| own[column]);
        let cpu = u32::try_from(table["core_i"][column]).ok().filter(|cpu| *cpu < 4096);
        let cpu = cpu.ok_or_else(|| ImportError::whole("`core_i:` has an impossible CPU"))?;
        let stated = Stated {
            cycles: of("int_n"),
            min: of("int_min(ns)"),
            mean: of("int_mean(ns)").map(tactus_model::number::float),
            max: of("int_max(ns)"),
            ..Stated::default()
        };
        let series = Rows::default().series(stated);
        let series = series.map_err(|what| ImportError::whole(format!("CPU {cpu}: {what}")))?;
        recording.series.push(series.at(u32::try_from(column).unwrap_or(u32::MAX), Some(cpu)));
    }
    recording.duration_ns = table.get("runtime(ns)").and_then(|all| all.iter().max().copied());
    if let Some(threshold) = table.get("threshold(ns)").and_then(|all| all.iter().max()) {
        recording.notes.push(format!("gaps below its threshold of {threshold} ns are not in it"));
        if recording.series.iter().all(|series| series.totals.cycles == 0) && columns > 0 {
            recording.found_nothing = Some(format!("it saw no gap above {threshold} ns"));
        }
    }
    conditions.tell(&mut recording);
    recording.notes.push("it has totals but no histogram: quantiles are unknown".into());
    Ok(vec![recording])
}
