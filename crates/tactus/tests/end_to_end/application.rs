//! Programs that mark their own cycles, in C and in Rust, measured where they run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;
use tactus_system::{Real, topology};

use crate::common::{
    alone, json, measures_beside_others, nothing_is_left, output, skipped, stderr, stdout, tactus,
};
use crate::container::Container;
use crate::on_docker::daemon::Daemon;
use crate::sshd::Sshd;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The example in C, compiled.
fn cycle(dir: &Path, more: &[&str]) -> PathBuf {
    let program = dir.join("cycle");
    let built = Command::new("cc")
        .args(["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(format!("{ROOT}/crates/tactus-application/include"))
        .args(more)
        .arg("-o")
        .arg(&program)
        .arg(format!("{ROOT}/examples/application/cycle.c"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    program
}

/// The last CPU of this machine.
fn cpu() -> String {
    topology(&Real).allowed.iter().last().unwrap().to_string()
}

/// A plan of the host, on whose last CPU a program is started that marks in `file`.
fn plan(
    program: &[&str],
    file: &Path,
    interval: &str,
    activities: &[(&str, &str)],
    duration: &str,
) -> String {
    let cpu = cpu();
    let mut text = format!(
        "name = \"own program\"\n[environment.host]\nkind = \"host\"\n[[scenario]]\nname = \"control\"\n\
         duration = \"{duration}\"\ninterval = \"{interval}\"\n"
    );
    for (value, more) in activities {
        text += &format!(
            "[[scenario.activity]]\nmeasure = {{ kind = \"application\", file = {file:?}, value = \"{value}\"{more} }}\n\
             in = \"host\"\ncpus = \"{cpu}\"\n"
        );
    }
    let run: Vec<&str> = ["chrt", "-f", "60"].iter().chain(program).copied().collect();
    text + &format!(
        "[[scenario.activity]]\nload = {{ kind = \"command\", run = {run:?} }}\nin = \"host\"\ncpus = \"{cpu}\"\n"
    )
}

fn measured(dir: &Path, plan: &str) -> Value {
    let file = dir.join("plan.toml");
    fs::write(&file, plan).unwrap();
    let bundle = dir.join("bundle");
    let _ = fs::remove_dir_all(&bundle);
    let result = output(tactus().arg("run").arg(&file).arg("--out").arg(&bundle));
    assert!(matches!(result.status.code(), Some(0 | 1 | 3)), "{}", stderr(&result));
    let text = output(tactus().arg("report").arg(&bundle).args(["--format", "text", "--out", "-"]));
    assert!(stdout(&text).contains("response)"), "{}", stderr(&text));
    json(&output(tactus().arg("report").arg(&bundle).arg("--json")))
}

/// A program of the machine until this is dropped.
struct Program(Child);

impl Program {
    fn start(words: &[&str]) -> Self {
        Self(Command::new(words[0]).args(&words[1..]).spawn().unwrap())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_that_overruns_in_known_cycles_is_counted_exactly_whatever_it_does_with_what_it_missed() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let program = cycle(dir.path(), &[]);
    let file = dir.path().join("shared");
    let words = [program.to_str().unwrap(), file.to_str().unwrap(), "100000", "0", "10", "3"];
    for late in [false, true] {
        let words: Vec<&str> = words.iter().copied().chain(late.then_some("late")).collect();
        let values = [("response", ""), ("start", ""), ("execution", "")];
        let shown = measured(dir.path(), &plan(&words, &file, "100ms", &values, "6s"));
        let of = |value: &str| {
            let rows = shown["scenarios"].as_array().unwrap();
            rows.iter()
                .find(|row| row["series"][0]["kind"] == value)
                .unwrap_or_else(|| panic!("{shown:#}"))
                .clone()
        };
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{shown:#}"));
        for value in ["response", "start", "execution"] {
            let row = of(value);
            assert_eq!(row["status"], "measured", "{late} {value}: {row:#}");
            assert_eq!(row["all"]["lost"], 0, "{value}: {row:#}");
            assert_eq!(row["self_test"]["passed"], true, "{value}: {row:#}");
        }
        let response = of("response");
        let all = &response["all"];
        // The tenth, the twentieth and the thirtieth, each over three due times.
        assert_eq!(all["overruns"], 9, "late {late}: {all:#}");
        let (cycles, corrected) = (number(&all["cycles"]), &all["corrected"]);
        assert!((50..=52).contains(&cycles), "late {late}: {all:#}");
        assert_eq!((number(&corrected["count"]), &corrected["lost"]), (cycles + 9, &Value::from(0)));
        assert!(number(&all["max_ns"]) >= 350_000_000, "it ends half a period after the third: {all:#}");
        // Nothing but the long cycles is as long as they are, and each has its own length.
        let executed = &of("execution")["all"];
        assert!(executed["overruns"].is_null(), "it has no periods: {executed:#}");
        assert!(number(&executed["max_ns"]) <= number(&all["max_ns"]));
        let in_all = cycles + if late { 9 } else { 0 };
        assert!(number(&executed["cycles"]).abs_diff(in_all) <= 1, "{executed:#}");
    }
    nothing_is_left();
}

#[test]
fn a_requirement_on_a_program_is_judged_and_more_overruns_than_are_allowed_fail() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let program = cycle(dir.path(), &[]);
    let file = dir.path().join("shared");
    let (program, path) = (program.to_str().unwrap(), file.to_str().unwrap());
    let _program = Program::start(&[program, path, "10000", "0"]);
    let measure = |path: &str, limits: &[&str]| {
        let mut command = tactus();
        command.args(["measure", "--measurement", "application", "--file", path, "-i", "10ms", "-a", &cpu()]);
        json(&output(command.args(["-D", "2", "--json"]).args(limits)))["scenarios"][0].clone()
    };
    let judged = measure(path, &["--max", "1ns", "--overruns", "1000"]);
    let said = judged["verdict"]["reason"].as_str().unwrap_or_default().to_owned();
    // Two seconds are too few for anything else; a maximum needs no second value.
    assert!(judged["verdict"]["outcome"] == "fail" && said.contains("exceeds the required"), "{judged:#}");
    // Of a program that the run starts itself, each tenth cycle of its first thirty takes three periods and a half.
    let late = dir.path().join("late");
    let words = [program, late.to_str().unwrap(), "10000", "0", "10", "3"];
    let plan = plan(&words, &late, "10ms", &[("response", "")], "2s")
        .replace("name = \"control\"\n", "name = \"control\"\nrequire = { overruns = 0 }\n");
    let judged = measured(dir.path(), &plan)["scenarios"][0].clone();
    let said = judged["verdict"]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(judged["all"]["overruns"].as_u64() > Some(0), "{judged:#}");
    let more = said.contains("overruns are more than the required 0");
    assert!(judged["verdict"]["outcome"] == "fail" && more, "{judged:#}");
    let wrong =
        output(tactus().args(["measure", "--measurement", "application", "--file", path, "-i", "5ms"]));
    assert!(
        stderr(&wrong).contains("a period of 10ms, but the plan's interval is 5ms"),
        "{}",
        stderr(&wrong)
    );
    let unnamed = output(tactus().args(["measure", "--measurement", "application"]));
    assert!(unnamed.status.code() == Some(2) && stderr(&unnamed).contains("--file"), "{}", stderr(&unnamed));
}

#[test]
fn a_program_that_ends_or_stalls_ends_the_measurement_and_what_was_measured_stays() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let program = cycle(dir.path(), &[]);
    let program = program.to_str().unwrap();
    for (name, cycles, stop, said) in [
        ("ends", "150", false, "its program has ended"),
        ("stalls", "0", true, "no cycle has been marked in it for"),
    ] {
        let file = dir.path().join(name);
        let words = [program, file.to_str().unwrap(), "10000", cycles];
        let patience = [("response", ", patience = \"1s\"")];
        // The program stops before it could be killed: it is not reaped, and marks nothing.
        let script = format!("(sleep 2; kill -STOP $$) & exec {}", words.join(" "));
        let words: Vec<&str> = if stop { vec!["sh", "-c", &script] } else { words.to_vec() };
        let plan = plan(&words, &file, "10ms", &patience, "20s").replace("control = true\n", "");
        let path = dir.path().join("plan.toml");
        fs::write(&path, plan).unwrap();
        let bundle = dir.path().join(format!("bundle-{name}"));
        let result = output(tactus().arg("run").arg(&path).arg("--out").arg(&bundle));
        assert!(stderr(&result).contains(said), "{name}: {}", stderr(&result));
        let row = json(&output(tactus().arg("report").arg(&bundle).arg("--json")))["scenarios"][0].clone();
        assert_eq!(row["status"], "failed", "{name}: {row:#}");
        assert!(row["reason"].as_str().unwrap().contains(said), "{name}: {row:#}");
        let cycles = row["all"]["cycles"].as_u64().unwrap();
        assert!((50..=400).contains(&cycles), "{name}: {row:#}");
    }
}

#[test]
fn the_example_in_rust_is_measured_from_the_command() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let built = output(Command::new(env!("CARGO")).current_dir(ROOT).args([
        "build",
        "--quiet",
        "-p",
        "tactus-application",
        "--example",
        "cycle",
    ]));
    assert!(built.status.success(), "{}", stderr(&built));
    // Beside this program's own directory.
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("examples/cycle");
    let file = dir.path().join("shared");
    let (program, path) = (program.to_str().unwrap(), file.to_str().unwrap());
    let mut program = Program::start(&["taskset", "-c", &cpu(), program, path, "1000", "12000"]);
    let until = Instant::now() + Duration::from_secs(10);
    while !file.exists() {
        assert!(Instant::now() < until, "it marks nowhere");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut measure = tactus();
    measure.args(["measure", "--measurement", "application", "--file", path, "-i", "1ms", "-a", &cpu()]);
    let shown = json(&output(measure.args(["--value", "start", "-D", "2", "--json"])));
    let row = &shown["scenarios"][0];
    assert_eq!((&row["status"], &row["series"][0]["kind"]), (&"measured".into(), &"start".into()), "{row:#}");
    let [cycles, overruns, lost] =
        ["cycles", "overruns", "lost"].map(|key| row["all"][key].as_u64().unwrap_or(u64::MAX));
    // It does late what it missed: every due time has a cycle.
    assert!((1_990..=2_001).contains(&(cycles + overruns)) && lost == 0, "{row:#}");
    assert!(program.0.wait().unwrap().success());
    assert!(!file.exists(), "who closes removes what is his");
    nothing_is_left();
}

/// Looks for a program in two places, where it marks and where it does not: the rows of both, of one run.
fn looked_for(dir: &Path, environments: &str, places: [(&str, &str); 2]) -> Value {
    let mut text =
        format!("name = \"own program\"\n[defaults]\nduration = \"2s\"\ninterval = \"10ms\"\n{environments}");
    for (name, (place, file)) in ["there", "not there"].into_iter().zip(places) {
        text += &format!(
            "[[scenario]]\nname = \"{name}\"\nenvironment = \"{place}\"\n\
             measurement = {{ kind = \"application\", file = \"{file}\", patience = \"4s\" }}\n"
        );
    }
    let (plan, bundle) = (dir.join("plan.toml"), dir.join("bundle"));
    fs::write(&plan, text).unwrap();
    let result = output(tactus().arg("run").arg(&plan).arg("--out").arg(&bundle));
    let shown = output(tactus().arg("report").arg(&bundle).arg("--json"));
    assert!(bundle.exists(), "{}", stderr(&result));
    json(&shown)["scenarios"].clone()
}

/// The first row has its cycles, and the second says which file it did not find.
fn found_in_the_first_alone(rows: &Value, kind: &str, file: &str) {
    let (there, not_there) = (&rows[0], &rows[1]);
    assert_eq!((&there["status"], &there["kind"]), (&"measured".into(), &kind.into()), "{there:#}");
    let [cycles, overruns, lost] =
        ["cycles", "overruns", "lost"].map(|key| there["all"][key].as_u64().unwrap_or(u64::MAX));
    // Two seconds of it; an ordinary program beside others may begin and end late, and none of its cycles is lost.
    assert!((100..=201).contains(&cycles.saturating_add(overruns)) && lost == 0, "{there:#}");
    let reason = not_there["reason"].as_str().unwrap_or_default();
    let said = format!("{file} is not there, for 4s");
    assert!(not_there["status"] == "failed" && reason.contains(&said), "{said}: {not_there:#}");
}

/// A program in a container of the user's is measured there. One that tactus starts itself holds no program.
fn in_containers(
    kind: &str,
    options: &str,
    dir: &Path,
    file: &str,
    start: impl FnOnce(&str, &Path, &[&str]) -> Container,
) {
    let root = dir.join("root");
    fs::create_dir_all(root.join("usr")).unwrap();
    fs::rename(cycle(dir, &["-static"]), root.join("cycle")).unwrap();
    let name = format!("own-program-{}", std::process::id());
    let container = start(&name, &root, &["/cycle", file, "10000", "0"]);
    let environments = format!(
        "[environment.users]\nkind = \"{kind}\"\nattach = \"{name}\"\n{options}\n\
         [environment.own]\nkind = \"{kind}\"\n{options}\n"
    );
    let rows = looked_for(dir, &environments, [("users", file), ("own", file)]);
    container.remove();
    found_in_the_first_alone(&rows, kind, file);
}

/// Whether a program can be started here; where not, that is said.
fn is_installed(program: &str) -> bool {
    let here = Command::new(program).arg("--version").output().is_ok();
    if !here {
        skipped(&format!("there is no {program}"));
    }
    here
}

#[test]
fn a_program_in_a_container_of_podman_that_runs_is_measured_in_it() {
    let Some(_turn) = measures_beside_others() else { return };
    if !is_installed("podman") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    in_containers("podman", "", dir.path(), "/dev/shm/control", Container::running);
    nothing_is_left();
}

#[test]
fn a_program_in_a_container_of_docker_that_runs_is_measured_in_it() {
    let Some(_alone) = alone() else { return };
    let Some(daemon) = Daemon::start() else { return skipped("docker: there is no dockerd") };
    let dir = tempfile::tempdir().unwrap();
    let options = format!("host = \"{}\"", daemon.host());
    in_containers("docker", &options, dir.path(), "/dev/shm/control", |name, root, program| {
        Container::of_docker(&daemon, name, root, program)
    });
    // Its own groups bear our name, too.
    drop(daemon);
    nothing_is_left();
}

#[test]
fn a_program_in_a_container_of_lxc_that_runs_is_measured_in_it() {
    let Some(_turn) = measures_beside_others() else { return };
    if !is_installed("lxc-execute") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = format!("path = \"{}\"", dir.path().display());
    // Its /dev is small, and it has no other memory.
    in_containers("lxc", &options, dir.path(), "/control", Container::of_lxc);
    nothing_is_left();
}

#[test]
fn a_program_on_a_machine_that_ssh_reaches_is_measured_there() {
    let Some(_turn) = measures_beside_others() else { return };
    let server = match Sshd::start() {
        Ok(server) => server,
        Err(why) => return skipped(&why),
    };
    let dir = tempfile::tempdir().unwrap();
    let program = cycle(dir.path(), &[]);
    let file = dir.path().join("control").display().to_string();
    let other = format!("{file}-of-nobody");
    let program = Program::start(&[program.to_str().unwrap(), &file, "10000", "0"]);
    let mut environments = "[environment.board]\nkind = \"ssh\"\n".to_owned();
    for (key, value) in server.spec().options {
        environments += &format!("{key} = {value}\n");
    }
    let rows = looked_for(dir.path(), &environments, [("board", &file), ("board", &other)]);
    drop(program);
    found_in_the_first_alone(&rows, "ssh", &other);
    nothing_is_left();
}
