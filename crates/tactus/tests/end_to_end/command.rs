//! The command as a user meets it: help, lists, wrong options, closed pipes.

use std::fs;
use std::process::Stdio;

use crate::common::{
    alone, beside_others, copied_into, json, measures_beside_others, of_this_test, output, stderr, stdout,
    tactus,
};

/// The output of a command on stderr, without the parts that differ between machines.
fn complaint(arguments: &[&str]) -> String {
    let result = output(tactus().args(arguments));
    assert_eq!(result.status.code(), Some(2), "{arguments:?}: {}", stderr(&result));
    assert!(result.stdout.is_empty(), "{arguments:?} printed data: {}", stdout(&result));
    format!("$ tactus {}\n{}", arguments.join(" "), stderr(&result))
}

#[test]
fn wrong_words_are_named_with_a_hint() {
    let _turn = beside_others();
    let all: Vec<String> = [
        &["run", "intel-xeon-2051"][..],
        &["run", "no-such-file.toml"],
        &["run", "--duration", "ten"],
        &["run", "--only", "hots"],
        &["report", "/nonexistent"],
        &["report", "/nonexistent", "--format", "pdf"],
        &["explain", "tmier"],
        &["measure", "--in", "vbox"],
        &["measure", "--in", "qmeu"],
        &["measure", "--in", "docker:--privileged"],
        &["measure", "--in", "qemu:guest"],
        &["measure", "tmier"],
        &["measure", "--load", "cache:byts=8M"],
        &["audit", "--only", "rt-thr"],
        &["measure", "application"],
        &["measure", "--measurement", "tmier"],
        &["measure", "--load", "fire"],
        &["measure", "-a", "4000"],
        &["measure", "-p", "100"],
        &["measure", "-t", "0"],
        &["measure", "memory", "-t", "3"],
        &["measure", "timer", "--file", "marks"],
        &["tune", "plan", "--profile", "realtime-virtual-hots"],
        &["kernel", "use", "/etc/passwd"],
        &["show"],
        &["export", "first", "--format", "csv"],
        &["run", "intel-xeon-2015", "--in", "host"],
        &["prove", "no-such-check"],
        &["compare", "first"],
        &["compare", "first", "second"],
        &["environments", "qemu"],
        &["watch", "first"],
        &["watch", "--list"],
        &["fleet", "show", "nowhere"],
        &["fleet", "collect"],
        &["convert", "nowhere"],
        &["convert", "first", "--format", "csv"],
        &["tune", "apply", "--profile", "realtime"],
        &["tune", "plan", "--isolate", "1", "--from", "/nonexistent"],
    ]
    .iter()
    .map(|arguments| complaint(arguments))
    .collect();
    for command in COMMANDS {
        assert!(all.iter().any(|one| one.starts_with(&format!("$ tactus {command} "))), "{command}");
    }
    assert!(all.iter().all(|one| one.contains("error: ") && one.contains("\nhint: ")), "{all:#?}");
    insta::with_settings!({ filters => vec![
        (r"(has CPUs|of `host`:) [0-9,-]+", "$1 [CPUS]"),
    ]}, {
        insta::assert_snapshot!(all.join("\n"));
    });
}

#[test]
fn no_word_of_the_command_line_passes_for_a_hint() {
    let _turn = beside_others();
    let said = complaint(&["report", "--x\n  tip: run this first"]);
    assert!(!said.lines().skip(1).any(|line| line.starts_with("hint: run this")), "{said}");
    let said = complaint(&["report", "--x\nUsage: reboot now please"]);
    assert!(said.contains("\nhint: `tactus --help` lists the options"), "{said}");
}

/// The commands that `tactus` lists or names.
const COMMANDS: [&str; 12] = [
    "run",
    "measure",
    "audit",
    "tune",
    "prove",
    "compare",
    "report",
    "environments",
    "watch",
    "fleet",
    "convert",
    "explain",
];

#[test]
fn the_first_screen_and_the_short_help_of_each_command_fit_a_terminal() {
    let _turn = beside_others();
    let first = output(&mut tactus());
    let mut all = stderr(&first) + &stdout(&first);
    assert!(all.lines().count() <= 20, "{all}");
    for command in COMMANDS {
        let help = stdout(&output(tactus().args([command, "-h"])));
        assert!(help.contains("Examples:\n  tactus "), "{help}");
        all += &format!("\n$ tactus {command} -h\n{help}");
    }
    assert!(all.lines().all(|line| line.chars().count() <= 100), "{all}");
    insta::assert_snapshot!(all);
}

/// Bundles that were recorded once.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-bundle/tests/recorded");

/// The answers of `run`, `measure` and `environments` depend on the machine: others of these tests count their rows.
#[test]
fn the_answer_of_each_command_fits_a_terminal() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let mut all = String::new();
    let mut answer = |arguments: &[&str], code: i32| {
        let result = output(tactus().args(arguments).current_dir(RECORDED).env("XDG_STATE_HOME", dir.path()));
        let (data, said) = (stdout(&result), stderr(&result));
        assert_eq!(result.status.code(), Some(code), "{arguments:?}: {data}{said}");
        // A command to copy is not broken.
        let wide = |line: &&str| line.chars().count() > 100 && !line.contains("tactus ");
        assert_eq!(data.lines().find(wide), None, "{arguments:?}");
        all += &format!("$ tactus {}\n{data}{said}exit code {code}\n\n", arguments.join(" "));
    };
    answer(&["report", "environments"], 0);
    answer(&["report", "prove"], 0);
    answer(&["report", "killed"], 0);
    answer(&["compare", "interrupted", "killed"], 0);
    answer(&["audit", "--from", "environments"], 1);
    answer(&["tune", "plan", "--from", "environments", "--isolate", "1"], 0);
    answer(&["explain", "timer"], 0);
    answer(&["convert", "--formats"], 0);
    insta::assert_snapshot!(all);
}

#[test]
fn words_of_the_field_and_beginnings_of_words_are_explained_as_what_they_stand_for() {
    let _turn = beside_others();
    let explained = |word: &str| stdout(&output(tactus().args(["explain", word])));
    for (word, of) in
        [("hackbench", "scheduler: "), ("oslat", "spin: "), ("kvm", "qemu: "), ("rt-thr", "rt-throttling: ")]
    {
        assert!(explained(word).starts_with(of), "{word}: {}", explained(word));
    }
    let list = stdout(&output(tactus().arg("explain")));
    assert!(list.lines().all(|line| line.chars().count() <= 100), "{list}");
}

#[test]
fn every_word_that_explain_lists_is_explained() {
    let _turn = beside_others();
    let list = stdout(&output(tactus().arg("explain")));
    let words: Vec<&str> = list
        .lines()
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert!(words.len() > 10, "{list}");
    let listed = json(&output(tactus().args(["explain", "--json"])));
    let listed = listed.as_array().unwrap();
    for word in words {
        assert!(listed.iter().any(|one| one["word"] == word && one["section"].is_string()), "{word}");
        let as_json = json(&output(tactus().args(["explain", word, "--json"])));
        let one = output(tactus().args(["explain", word]));
        assert_eq!(as_json["text"].as_str().unwrap().trim_end(), stdout(&one).trim_end(), "{word}");
        assert_eq!(one.status.code(), Some(0), "{word}");
        assert!(stdout(&one).lines().count() > 1, "{word}: {}", stdout(&one));
    }
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let _turn = beside_others();
    let mut child = tactus().arg("explain").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let result = child.wait_with_output().unwrap();
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    assert!(result.stderr.is_empty(), "{}", stderr(&result));
}

#[test]
fn environments_are_listed_usable_or_with_their_remedy() {
    let _turn = beside_others();
    let document = json(&output(tactus().args(["environments", "--json"])));
    let kinds: Vec<&str> = document.as_array().unwrap().iter().map(|e| e["kind"].as_str().unwrap()).collect();
    let known: Vec<&str> = tactus_environment::ENVIRONMENTS.iter().map(|kind| kind.kind()).collect();
    assert_eq!(kinds, known);
    assert_eq!(kinds[0], "host");
    let nothing = tempfile::tempdir().unwrap();
    let document = json(&output(tactus().env("PATH", nothing.path()).args(["environments", "--json"])));
    // runc lies in an sbin directory, which is searched whatever PATH says.
    for entry in document.as_array().unwrap().iter().filter(|entry| entry["usable"] == false) {
        assert!(
            !entry["reason"].as_str().unwrap().is_empty() && !entry["remedy"].as_str().unwrap().is_empty()
        );
    }
    for kind in ["podman", "qemu"] {
        assert!(
            document
                .as_array()
                .unwrap()
                .iter()
                .any(|entry| entry["kind"] == kind && entry["usable"] == false)
        );
    }
}

#[test]
fn the_probe_is_written_as_a_program_for_an_architecture() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    for (arch, machine) in [("x86_64", 62u8), ("aarch64", 183)] {
        let file = dir.path().join("bin").join(arch);
        let result = output(tactus().args(["probe", "--arch", arch, "--out"]).arg(&file));
        assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
        let bytes = fs::read(&file).unwrap();
        assert_eq!((&bytes[..4], bytes[18]), (&b"\x7fELF"[..], machine), "{arch}");
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o755);
    }
    let own = dir.path().join("bin").join(std::env::consts::ARCH);
    let version = output(std::process::Command::new(own).arg("--version"));
    assert!(stdout(&version).starts_with("tactus-probe "), "{}", stderr(&version));
    let refused = output(tactus().args(["probe", "--out", "/proc/no/such/place"]));
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("hint:"));
}

#[test]
fn completions_and_manual_pages_are_made_from_the_same_command_line() {
    let _turn = beside_others();
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&output(tactus().args(["completions", shell]))).contains("environments"), "{shell}");
    }
    assert!(stdout(&output(tactus().arg("man"))).contains(".TH"));
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(output(tactus().arg("man").arg("--out").arg(dir.path())).status.code(), Some(0));
    assert!(dir.path().join("tactus-run.1").exists());
}

#[test]
fn measure_prints_a_line_per_thread_and_a_histogram_as_cyclictest_does() {
    let Some(_turn) = measures_beside_others() else { return };
    let result = output(tactus().args([
        "measure",
        "-p",
        "80",
        "-i",
        "1000",
        "-a",
        "0",
        "-t",
        "2",
        "-D",
        "2",
        "--histogram",
        "400",
    ]));
    let text = stdout(&result);
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let threads: Vec<&str> = text.lines().filter(|line| line.starts_with("T:")).collect();
    assert_eq!(threads.len(), 2, "{text}");
    assert!(threads[0].contains("P:80") && threads[1].contains("P:79"), "{text}");
    for line in
        ["# Histogram\n", "\n000000 ", "# Total: ", "# Max Latencies: ", "# Thread 1:", "# Self-test: "]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    let counted: u64 = text
        .lines()
        .skip_while(|line| *line != "# Histogram")
        .skip(1)
        .take_while(|line| !line.starts_with('#'))
        .flat_map(|line| line.split_whitespace().skip(1))
        .map(|count| count.parse::<u64>().unwrap())
        .sum();
    let overflows: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix("# Histogram Overflows: "))
        .unwrap()
        .split(' ')
        .map(|n| n.parse::<u64>().unwrap())
        .sum();
    let cycles: u64 = threads
        .iter()
        .map(|line| {
            line.split("C:").nth(1).unwrap().split_whitespace().next().unwrap().parse::<u64>().unwrap()
        })
        .sum();
    assert_eq!(counted + overflows, cycles, "{text}");
}

#[test]
fn a_latency_above_the_break_value_ends_the_measurement_and_says_so() {
    let Some(_turn) = measures_beside_others() else { return };
    let result = output(tactus().args(["measure", "-D", "60", "-b", "1ns", "--json"]));
    let document = json(&result);
    let entry = &document["scenarios"][0];
    assert!(entry["duration_s"].as_f64().unwrap() < 30.0, "{entry:#}");
    assert!(entry["reason"].as_str().unwrap().contains("at which it stops"), "{entry:#}");
    assert_eq!(result.status.code(), Some(1), "a gate asks whether it is exceeded");
}

#[test]
fn what_is_required_of_a_measurement_is_answered_in_its_last_line() {
    let Some(_turn) = measures_beside_others() else { return };
    let result = output(tactus().args(["measure", "-D", "1", "-i", "1ms", "--max", "1s", "--quiet"]));
    assert_eq!(result.status.code(), Some(3), "a second decides nothing: {}", stderr(&result));
    let text = stdout(&result);
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("# Verdict: inconclusive: "), "{text}");
    assert!(last.matches("more of the same").count() <= 1, "{text}");
}

#[test]
fn gaps_are_measured_too() {
    let Some(_alone) = alone() else { return };
    let result = output(tactus().args(["measure", "--measurement", "spin", "-D", "2", "--json"]));
    let document = json(&result);
    let entry = &document["scenarios"][0];
    assert_eq!(entry["measurement"], "spin", "{}", stderr(&result));
    assert!(entry["all"]["cycles"].as_u64().unwrap() > 1000, "{entry:#}");
    assert!(entry["all"]["overruns"].is_null(), "gaps have no periods: {entry:#}");
}

#[test]
fn without_the_right_to_real_time_the_reason_and_the_remedy_are_given() {
    let _turn = beside_others();
    let readable = tempfile::Builder::new().prefix("tactus-nobody").tempdir_in("/tmp").unwrap();
    let copy = copied_into(readable.path());
    let mode = |path: &std::path::Path| {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    mode(readable.path());
    mode(&copy);
    let home = readable.path().join("home");
    fs::create_dir(&home).unwrap();
    if let Err(error) = std::os::unix::fs::chown(&home, Some(65534), Some(65534)) {
        return crate::common::skipped(&format!("chown: {error}"));
    }
    let mut command = std::process::Command::new("setpriv");
    of_this_test(&mut command).args([
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "--bounding-set",
        "-all",
        "--inh-caps",
        "-all",
    ]);
    command.arg(&copy).env("HOME", &home).env_remove("XDG_RUNTIME_DIR").env_remove("XDG_CACHE_HOME");
    command.args(["measure", "-D", "1", "--json"]).stdin(Stdio::null());
    match command.output() {
        Ok(result) => {
            let said = stderr(&result) + &stdout(&result);
            assert_eq!(result.status.code(), Some(2), "{said}");
            assert!(said.contains("SCHED_FIFO") && said.to_lowercase().contains("rtprio"), "{said}");
        }
        Err(error) => crate::common::skipped(&format!("setpriv: {error}")),
    }
}
