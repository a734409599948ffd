//! `tactus cyclictest` and the name `cyclictest`, beside the real one: the same lines, columns and keys.

use std::fs;
use std::process::Output;

use crate::common::{beside_others, output, stderr, stdout, tactus};
use crate::rt_tests::{both, called, form, keys};

#[test]
fn the_last_lines_the_histogram_and_its_sums_have_cyclictests_form() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    for options in [
        "-q -p 80 -i 1000 -l 300 -t 2 -a",
        "-q -p 80 -i 1000 -l 300 -S -m -N -d 0",
        "-q -p 80 -i 1000 -l 300 -S -m -h 20",
        "-q -i 1000 -D 1 -t 2 -H 20 --policy=rr",
        "-q -i 500 -D 1 -a 0 --default-system",
    ] {
        let words: Vec<&str> = options.split_whitespace().collect();
        let Some((real, ours)) = both("cyclictest", dir.path(), &words) else { return };
        assert_eq!(form(&stdout(&real)), form(&stdout(&ours)), "{options}\n{}", stdout(&ours));
        assert_eq!(stdout(&real).lines().count(), stdout(&ours).lines().count(), "{options}");
    }
}

#[test]
fn its_json_has_the_same_keys_and_each_thread_the_interval_that_cyclictest_gives_it() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let words = ["-q", "-p", "80", "-i", "1000", "-D", "2", "-t", "2", "-a", "-d", "1000", "--json=run.json"];
    let Some((_, ours)) = both("cyclictest", dir.path(), &words) else { return };
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(dir.path().join(name)).unwrap()).unwrap()
    };
    let (real, own) = (read("real-run.json"), read("run.json"));
    assert_eq!(keys(&real), keys(&own));
    assert_eq!(keys(&real["thread"]["0"]), keys(&own["thread"]["0"]));
    assert_eq!(keys(&real["sysinfo"]), keys(&own["sysinfo"]));
    assert_eq!(
        own["cmdline:"].as_str().unwrap().split(" cyclictest ").nth(1),
        Some(words.join(" ").as_str())
    );
    // The interval of the second thread is twice that of the first: it has half of the 2000 periods, if none was
    // missed.
    let cycles = |number: &str| own["thread"][number]["cycles"].as_u64().unwrap();
    assert!(cycles("0") > cycles("1"), "{own:#}");
    assert!(stdout(&ours).contains("I:2000"), "{}", stdout(&ours));
}

#[test]
fn under_cyclictests_name_its_lines_are_written_over_and_over_and_the_histogram_into_a_file() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let mut command = called("cyclictest", dir.path());
    let run = output(
        command.args(["-D", "1", "-p", "80", "-h", "9", "--histfile=hist.txt"]).current_dir(dir.path()),
    );
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let text = stdout(&run);
    assert!(text.starts_with("# /dev/cpu_dma_latency set to 0us\npolicy: fifo: loadavg: "), "{text}");
    assert!(text.matches("\u{1b}[3A").count() > 1, "{text}");
    assert!(!text.contains("# Histogram"), "{text}");
    let histogram = fs::read_to_string(dir.path().join("hist.txt")).unwrap();
    assert_eq!(histogram.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count(), 9);
}

#[test]
fn a_latency_above_the_limit_ends_it_and_is_no_failure() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    // No wake-up takes no time.
    let Some((real, ours)) = both("cyclictest", dir.path(), &["-q", "-i", "1000", "-D", "20", "-b", "1"])
    else {
        return;
    };
    let of = |run: &Output| {
        form(
            &stdout(run)
                .lines()
                .skip_while(|line| !line.starts_with("# Thread Ids"))
                .collect::<Vec<_>>()
                .join("\n"),
        )
    };
    assert_eq!(of(&real), of(&ours), "{}", stdout(&ours));
    assert_eq!(of(&ours).len(), 3, "{}", stdout(&ours));
}

#[test]
fn what_cyclictest_has_and_tactus_has_not_is_refused_before_anything_starts() {
    let run = output(tactus().args(["cyclictest", "-v"]));
    assert_eq!(run.status.code(), Some(2));
    assert!(stderr(&run).contains("error: tactus does not support cyclictest's -v"), "{}", stderr(&run));
    assert!(stderr(&run).contains("hint: "), "{}", stderr(&run));
    assert_eq!(stdout(&run), "");
}
