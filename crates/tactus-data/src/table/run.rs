//! One row per run.

use tactus_format::columns;
use tactus_format::export::table::Moment;
use tactus_model::bundle::{Contents, Machine, Manifest, Row};
use tactus_model::event::RowStatus;
use tactus_model::facts::Facts;

use super::{Table, Taken};

/// The table.
pub const TABLE: Table = Table {
    name: "run",
    about: "A row for each run: a bundle that was verified and collected.",
    columns: || COLUMNS,
    rows: Some(|taken, take| take(&cells(taken))),
};

fn manifest<'a>(of: &'a Taken<'_>) -> &'a Manifest {
    &of.source.contents.manifest
}

fn of_machine<'a>(of: &'a Taken<'_>) -> &'a Machine {
    &manifest(of).machine
}

/// The row that was measured on the machine itself, and its facts.
fn host(contents: &Contents) -> Option<(&Row, Option<&Facts>)> {
    let row = contents.rows.iter().find(|row| row.result.kind == "host")?;
    Some((row, contents.facts.get(&row.result.environment_key())))
}

fn of_host<'a>(of: &'a Taken<'_>, path: &str) -> Option<&'a str> {
    host(of.source.contents)?.1?.text(path).filter(|text| !text.is_empty())
}

fn counted(of: &Taken<'_>, status: RowStatus) -> usize {
    of.source.contents.rows.iter().filter(|row| row.result.status == status).count()
}

columns! { row: Taken<'_>;
    /// Key of the run, made of its machine, plan and beginning. It is the same for a bundle, wherever the bundle is
    /// collected.
    run: Text = row.run;
    /// Key of the machine. It is made of the number of its mainboard (DMI), else of its installed system (machine-id),
    /// as in table `machine`; else it is `name:` and its name.
    machine: Text = row.machine;
    /// The property that identifies the machine: `hardware`, `installation`, or `name`. Other machines may have the
    /// same name.
    identity: Text = row.identity;
    /// The machine's name: the one its user gave it, else its host name. Several machines may have the same name.
    name: Text = &of_machine(row).name;
    /// When the run began.
    started: Moment = Moment(Some(&manifest(row).started));
    /// When it ended.
    finished: Moment = Moment(manifest(row).finished.as_deref());
    /// `complete`, or `interrupted`: it ended before its plan was complete, and its numbers are valid.
    status: Text = super::series::word(&manifest(row).status);
    /// Number of sessions: more than one if the run was resumed.
    sessions: Whole = manifest(row).sessions.len().max(1);
    /// Scenarios of its plan, one row for each measurement.
    scenarios: Whole = row.source.contents.rows.len();
    /// How many of them were measured.
    measured: Whole = counted(row, RowStatus::Measured);
    /// How many of them failed.
    failed: Whole = counted(row, RowStatus::Failed);
    /// The plan's name.
    plan: Text = &manifest(row).plan;
    /// SHA-256 of the plan as it was run, with every value filled in for this machine.
    plan_sha256: Text = manifest(row).files.get("plan.toml");
    /// The engine that started it (`slurm`, `kubernetes`, ...), if one did.
    engine: Text = manifest(row).sessions.iter().find_map(|own| own.job.as_ref()).map(|job| &job.engine);
    /// The job, as the engine names it.
    job: Text = manifest(row).sessions.iter().find_map(|own| own.job.as_ref()).map(|job| &job.id);
    /// The version of tactus that measured.
    tactus: Text = &manifest(row).tactus;
    /// The version of the bundle's format.
    format: Text = format!("{}.{}", manifest(row).format.major, manifest(row).format.minor);
    /// The kind of evidence of the numbers of the machine itself: `bare metal`, `virtual host`, `emulated` or
    /// `imported`; null if nothing was measured on it.
    evidence: Text = host(row.source.contents).and_then(|(own, _)| own.result.evidence).map(|evidence| evidence.key().to_owned());
    /// Its processor.
    processor: Text = Some(&of_machine(row).processor).filter(|text| !text.is_empty());
    /// Its CPUs that are online.
    cpus: Text = Some(&of_machine(row).cpus).filter(|text| !text.is_empty());
    /// Its kernel: release and version.
    kernel: Text = Some(of_machine(row).kernel.trim()).filter(|text| !text.is_empty());
    /// Its distribution.
    system: Text = Some(&of_machine(row).system).filter(|text| !text.is_empty());
    /// Maker, version and date of its firmware.
    bios: Text = of_machine(row).bios.as_deref();
    /// The microcode of its first CPU.
    microcode: Text = of_machine(row).microcode.as_deref();
    /// The TuneD profile that was active.
    profile: Text = of_host(row, "/etc/tuned/active_profile");
    /// Key that distinguishes it from another bundle of the same run: the first 64 bits of SHA-256 of its manifest's
    /// content.
    content: Text = row.content;
}
