//! `tactus convert`, on what other instruments wrote, and on what one writes now.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{beside_others, json, output, skipped, stderr, stdout, tactus};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-format/tests/fixtures/import");

/// Every figure of the document of a bundle that these files become.
pub fn imported(out: &Path, files: &[&str]) -> serde_json::Value {
    let result = output(tactus().arg("convert").args(files).arg("--out").arg(out));
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    json(&output(tactus().arg("report").arg(out).arg("--json")))
}

#[test]
fn files_of_other_instruments_are_a_bundle_like_any_other_and_judge_nothing() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let mut files: Vec<String> =
        fs::read_dir(FILES).unwrap().map(|entry| entry.unwrap().path().display().to_string()).collect();
    files.sort();
    let document = imported(&out, &files.iter().map(String::as_str).collect::<Vec<_>>());
    let scenarios = document["scenarios"].as_array().unwrap();
    // rtla timerlat has three contexts.
    assert_eq!(scenarios.len(), files.len() + 2);
    for scenario in scenarios {
        assert_eq!(scenario["evidence"], "imported", "{scenario:#}");
        assert_eq!(scenario["status"], "measured", "{scenario:#}");
        assert!(scenario["verdict"].is_null(), "{scenario:#}");
    }
    for format in ["html", "text", "markdown", "json", "svg"] {
        let result = output(tactus().arg("report").arg(&out).args(["--format", format, "--out", "-"]));
        assert_eq!(result.status.code(), Some(0), "{format}: {}", stderr(&result));
        assert!(!result.stdout.is_empty(), "{format}");
    }
    let fitness = output(tactus().arg("report").arg(&out).args(["--class", "plc"]));
    assert_eq!(fitness.status.code(), Some(3), "{}", stdout(&fitness));
}

/// The output of `rtla timerlat hist -u -T 1` that stops before user space ran.
const STOPPED: &str = "\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:01
Index   IRQ-000   Thr-000   Usr-000
6             1         0         0
21            0         1         0
over:         0         0         0
count:        1         1         0
min:          6        21         -
avg:          6        21         -
max:          6        21         -
";

#[test]
fn a_part_of_a_file_that_has_no_values_was_not_measured_and_the_others_were() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stopped.txt");
    fs::write(&file, STOPPED).unwrap();
    for (name, limits, code) in [("free", &[][..], 0), ("limited", &["--max", "100us", "--overruns", "0"], 3)]
    {
        let out = dir.path().join(name);
        let result = output(tactus().arg("convert").arg(&file).args(limits).arg("--out").arg(&out));
        assert_eq!(result.status.code(), Some(code), "{name}: {}", stderr(&result));
        let document = json(&output(tactus().arg("report").arg(&out).arg("--json")));
        let status: Vec<&str> = document["scenarios"]
            .as_array()
            .unwrap()
            .iter()
            .map(|own| own["status"].as_str().unwrap())
            .collect();
        assert_eq!(status, ["measured", "measured", "skipped"], "{name}");
        let said = document["answer"]["sentence"].as_str().unwrap();
        assert!(said.ends_with("Not measured: stopped, user."), "{name}: {said}");
    }
}

/// Nothing is known of the instrument, so that a limit is neither kept nor broken.
#[test]
fn what_is_required_of_an_import_is_judged_and_cannot_be_told() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let files = [format!("{FILES}/cyclictest.json"), format!("{FILES}/cyclictest-v.txt")];
    let import = |out: &Path, limits: &[&str]| {
        output(
            tactus()
                .arg("convert")
                .args(&files)
                .args(["--name", "one", "--name", "other"])
                .args(limits)
                .arg("--out")
                .arg(out),
        )
    };
    for (name, limits) in [("broken", ["--max", "other=1us"]), ("kept", ["--max", "other=10s"])] {
        let out = dir.path().join(name);
        let result = import(&out, &limits);
        assert_eq!(result.status.code(), Some(3), "{name}: {}", stderr(&result));
        let document = json(&output(tactus().arg("report").arg(&out).arg("--json")));
        assert!(document["scenarios"][0]["verdict"].is_null(), "{name}: it is required of the other alone");
        let verdict = &document["scenarios"][1]["verdict"];
        assert_eq!(verdict["outcome"], "inconclusive", "{name}: {verdict:#}");
        assert!(verdict["reason"].as_str().unwrap().starts_with("imported: "), "{name}: {verdict:#}");
    }
    let unknown = dir.path().join("unknown");
    let result = import(&unknown, &["--max", "third=1us"]);
    assert_eq!(result.status.code(), Some(2));
    assert!(stderr(&result).contains("a limit for `third`"), "{}", stderr(&result));
    assert!(stderr(&result).contains("hint: use one of `one`, `other`") && !unknown.exists());
}

/// The output of `-h` does not say how long cyclictest measured, or with which interval.
#[test]
fn files_under_one_name_are_compared_and_what_they_do_not_say_is_not_known() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let named = |file: &str, out: &Path| imported(out, &[&format!("{FILES}/{file}"), "--name", "ours"]);
    let known = named("cyclictest.json", &first);
    let unknown = named("cyclictest-h.txt", &second);
    for document in [&known, &unknown] {
        let row = &document["scenarios"][0];
        assert_eq!((&row["name"], &row["environment"]), (&"ours".into(), &"ours".into()));
    }
    assert_eq!(known["scenarios"][0]["duration_s"], 0.1);
    assert!(unknown["scenarios"][0]["duration_s"].is_null());
    let answer = unknown["answer"]["sentence"].as_str().unwrap();
    assert!(
        answer.contains("for an unknown time, imported") && answer.contains("tactus did not measure it"),
        "{answer}"
    );
    let compared = output(tactus().arg("compare").args([&first, &second]));
    assert_eq!(compared.status.code(), Some(0), "{}", stderr(&compared));
    let said = stdout(&compared);
    assert!(said.contains("interval is 500us there and not known here"), "{said}");
    assert!(said.contains("1 run each") && !said.contains(": ,"), "{said}");
    let files = [format!("{FILES}/oslat.json"), format!("{FILES}/signaltest.json")];
    let words = ["--name", "only one", "--out"];
    let refused = output(tactus().arg("convert").args(&files).args(words).arg(dir.path().join("third")));
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--name: 1 for 2 files\nhint: repeat it for each file"));
}

#[test]
fn a_file_that_is_spoiled_is_refused_with_its_place_and_leaves_no_bundle() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("run.json"), dir.path().join("bundle"));
    fs::write(&file, "{\"thread\": {\"0\": {\"cycles\": 3,\n\"avg\": nan}}}").unwrap();
    let result = output(tactus().arg("convert").arg(&file).arg("--out").arg(&out));
    assert_eq!(result.status.code(), Some(2));
    assert!(stderr(&result).contains("run.json: line 2: column "), "{}", stderr(&result));
    assert!(stderr(&result).contains("hint: copy or write it again"), "{}", stderr(&result));
    assert!(!out.exists());
    // As a disk that was full leaves them.
    fs::write(&file, [0; 28 * 100]).unwrap();
    let result = output(tactus().arg("convert").arg(&file).arg("--out").arg(&out));
    assert_eq!(result.status.code(), Some(2));
    assert!(stderr(&result).contains("byte 0: a sample of the moment 0"), "{}", stderr(&result));
    fs::write(&file, "no measurement of anything\n").unwrap();
    let result = output(tactus().arg("convert").arg(&file).arg("--out").arg(&out));
    assert!(stderr(&result).contains("hint: `tactus convert --formats` lists"), "{}", stderr(&result));
}

/// Runs an instrument of the field in `dir`; false, and says so, where it is not installed.
fn ran(dir: &Path, program: &str, words: &[&str]) -> bool {
    let run = Command::new(program).args(words).current_dir(dir).output();
    let Ok(run) = run else {
        skipped(&format!("{program} is not installed"));
        return false;
    };
    assert!(run.status.success(), "{program}: {run:?}");
    fs::write(dir.join("stdout.txt"), &run.stdout).unwrap();
    true
}

/// Imports what is written to its standard input.
fn piped(out: &Path, bytes: &[u8]) -> std::process::Output {
    let mut child = tactus()
        .args(["convert", "-", "--out"])
        .arg(out)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A refused file is not read to its end.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    child.wait_with_output().unwrap()
}

#[test]
fn standard_input_and_packed_files_are_read_as_files_are() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let name = format!("{FILES}/cyclictest-v.txt");
    let plain = imported(&dir.path().join("plain"), &[&name]);
    let result = piped(&dir.path().join("piped"), &fs::read(&name).unwrap());
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let piped_document = json(&output(tactus().arg("report").arg(dir.path().join("piped")).arg("--json")));
    assert_eq!(piped_document["scenarios"][0]["name"], "standard input");
    assert_eq!(piped_document["scenarios"][0]["all"], plain["scenarios"][0]["all"]);
    let packed = dir.path().join("cyclictest-v.txt.gz");
    let gzip = Command::new("gzip").arg("-c").arg(&name).output().unwrap();
    fs::write(&packed, gzip.stdout).unwrap();
    let unpacked = imported(&dir.path().join("packed"), &[&packed.display().to_string()]);
    assert_eq!(unpacked["scenarios"][0]["name"], plain["scenarios"][0]["name"]);
    assert_eq!(unpacked["scenarios"][0]["series"][0]["cycles"], plain["scenarios"][0]["series"][0]["cycles"]);
}

#[test]
fn what_is_not_unpacked_here_is_refused_with_the_command_that_does() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let result = piped(&dir.path().join("bundle"), b"BZh91AY&SY\0\0\0\0");
    assert_eq!(result.status.code(), Some(2));
    let said = stderr(&result);
    assert!(
        said.contains("standard input: it is packed")
            && said.contains("hint: bzip2 -dc FILE | tactus convert -"),
        "{said}"
    );
}

/// 300 MB through a pipe, in an address space that has no room for them.
#[test]
fn a_long_stream_is_imported_in_little_memory() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let mut command = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_tactus");
    command.args(["-c", "ulimit -v 250000; exec \"$0\" convert - --out \"$1\"", program]).arg(&out);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines = 100_000_u64;
    for part in 0..110 {
        let text: String =
            (part * lines..(part + 1) * lines).map(|n| format!("{:8}:{n:8}:{:8}\n", 0, n % 977)).collect();
        if stdin.write_all(text.as_bytes()).is_err() {
            break;
        }
    }
    drop(stdin);
    let result = child.wait_with_output().unwrap();
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let document = json(&output(tactus().arg("report").arg(&out).arg("--json")));
    assert_eq!(document["scenarios"][0]["all"]["cycles"], 110 * lines);
}

#[test]
fn what_jitterdebugger_oslat_and_signaltest_measure_here_is_imported() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let of = |name: &str| dir.path().join(name).display().to_string();
    let mut files = Vec::new();
    if ran(dir.path(), "jitterdebugger", &["-o", "jitter", "-s", "-l", "300", "-a", "0", "-i", "500"]) {
        files.extend(["jitter/results.json", "jitter/samples.raw"].map(of));
    }
    if ran(dir.path(), "oslat", &["-D", "1", "-c", "0", "--json=oslat.json"]) {
        files.push(of("oslat.json"));
    }
    if ran(dir.path(), "signaltest", &["-q", "-l", "200", "--json=signal.json"]) {
        files.push(of("signal.json"));
    }
    if ran(dir.path(), "cyclictest", &["-v", "-q", "-l", "200", "-i", "500", "-t", "2"]) {
        fs::rename(dir.path().join("stdout.txt"), dir.path().join("verbose.txt")).unwrap();
        files.push(of("verbose.txt"));
    }
    if files.is_empty() {
        return;
    }
    let document =
        imported(&dir.path().join("bundle"), &files.iter().map(String::as_str).collect::<Vec<_>>());
    let scenarios = document["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), files.len());
    for (scenario, file) in scenarios.iter().zip(&files) {
        assert!(scenario["all"]["cycles"].as_u64().unwrap() >= 200, "{file}: {scenario:#}");
        assert!(scenario["all"]["max_ns"].as_u64() > scenario["all"]["min_ns"].as_u64(), "{file}");
        let written: Option<serde_json::Value> =
            fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let Some(written) = written else { continue };
        let threads = written.get("thread").or(written.get("cpu")).unwrap().as_object().unwrap();
        for (thread, series) in threads.values().zip(scenario["series"].as_array().unwrap()) {
            let cycles = thread.get("cycles").or(thread.get("count"));
            assert!(cycles.is_none_or(|cycles| *cycles == series["cycles"]), "{file}: {thread:#}");
        }
    }
}

/// Where the kernel has its tracers.
#[test]
fn what_rtla_measures_here_is_imported() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let of = |name: &str| dir.path().join(name).display().to_string();
    for tracer in ["timerlat", "osnoise"] {
        let run = Command::new("rtla").args([tracer, "hist", "-d", "2s", "-c", "0"]).output();
        let Ok(run) = run else {
            return skipped("rtla is not installed");
        };
        if stderr(&run).contains("not found") || stderr(&run).contains("Failed to") {
            // No package fixes it: this is counted, and fails nothing.
            eprintln!("SKIPPED: the kernel here does not let rtla measure: {}", stderr(&run));
            continue;
        }
        fs::write(dir.path().join(tracer), &run.stdout).unwrap();
        let document = imported(&dir.path().join(format!("{tracer}-bundle")), &[&of(tracer)]);
        assert!(document["scenarios"][0]["all"]["cycles"].as_u64().unwrap() > 0, "{document:#}");
    }
}

/// The figures that cyclictest measures now are in its two files, and in the bundle.
#[test]
fn what_cyclictest_measures_here_is_what_is_imported() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let run = Command::new("cyclictest")
        .args([
            "-q",
            "-l",
            "300",
            "-i",
            "500",
            "-t",
            "2",
            "-h",
            "60",
            "--json=run.json",
            "--histfile=run.txt",
        ])
        .current_dir(dir.path())
        .output();
    let Ok(run) = run else {
        return skipped("cyclictest is not installed");
    };
    assert!(run.status.success(), "{run:?}");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let written: serde_json::Value = serde_json::from_slice(&fs::read(file("run.json")).unwrap()).unwrap();
    let document = imported(&dir.path().join("bundle"), &[&file("run.json"), &file("run.txt")]);
    for scenario in document["scenarios"].as_array().unwrap() {
        for (number, series) in scenario["series"].as_array().unwrap().iter().enumerate() {
            let thread = &written["thread"][number.to_string()];
            assert_eq!(series["cycles"], thread["cycles"], "{series:#}");
            assert_eq!(series["max_ns"], thread["max"].as_u64().unwrap() * 1_000, "{series:#}");
            assert_eq!(series["min_ns"], thread["min"].as_u64().unwrap() * 1_000, "{series:#}");
            assert_eq!(series["lost"], 0, "{series:#}");
        }
    }
}

/// Files as people have them.
const FIELD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-format/tests/field");

#[test]
fn what_ended_a_run_and_how_it_was_scheduled_is_said_first() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let said = |file: &str| imported(&dir.path().join(file), &[&format!("{FIELD}/{file}")]);
    let document = said("cyclictest-v-break.txt");
    let answer = document["answer"]["sentence"].as_str().unwrap();
    assert!(answer.contains("115 us in cyclictest-v-break (it ended the run)"), "{answer}");
    let row = &document["scenarios"][0];
    assert_eq!((&row["all"]["max_ns"], &row["ended"]), (&115_000.into(), &"broke".into()));
    assert!(row["notes"][0]["text"].as_str().unwrap().contains("# Break value: 115"), "{row:#}");
    assert!(row["policy"].is_null() && row["priority"].is_null(), "{row:#}");
    let document = said("cyclictest-sched-other.txt");
    let answer = document["answer"]["sentence"].as_str().unwrap();
    assert!(answer.contains("(SCHED_OTHER, not real-time)"), "{answer}");
    let row = &document["scenarios"][0];
    assert_eq!(row["policy"], "other");
    assert!(row["all"]["overruns"].is_null(), "{row:#}");
    let notes: Vec<&str> =
        row["notes"].as_array().unwrap().iter().filter_map(|note| note["text"].as_str()).collect();
    assert!(
        notes[0].contains("SCHED_OTHER") && notes[1].contains("at least 2 periods were missed"),
        "{notes:?}"
    );
    assert!(notes.iter().any(|note| note.contains("load average 3.71 4.06 3.51")), "{notes:?}");
}

#[test]
fn an_instrument_that_found_nothing_is_imported_as_that() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let document = imported(&dir.path().join("bundle"), &[&format!("{FIELD}/rtla-osnoise-nothing.txt")]);
    let row = &document["scenarios"][0];
    assert_eq!(row["status"], "measured", "{row:#}");
    assert_eq!(row["reason"], "it saw no noise above its threshold", "{row:#}");
    assert!(row["all"]["max_ns"].is_null(), "{row:#}");
    let document = imported(&dir.path().join("top"), &[&format!("{FIELD}/rtla-osnoise-top.txt")]);
    let all = &document["scenarios"][0]["all"];
    assert_eq!((&all["max_ns"], all["min_ns"].is_null()), (&277_000.into(), true), "{all:#}");
}

#[test]
fn every_format_is_listed_with_the_command_that_makes_it() {
    let result = output(tactus().args(["convert", "--formats"]));
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let said = stdout(&result);
    assert!(said.contains("hwlatdetect: its report\n  made by: hwlatdetect --duration=10m"), "{said}");
}
