//! `scripts/bench/instrument.py` compares the probe with cyclictest and writes its job by hand: one that
//! the probe does not understand would never be answered.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{PROBE, skipped};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn the_comparison_with_cyclictest_speaks_the_probes_protocol() {
    for program in ["python3", "cyclictest"] {
        if Command::new(program).arg("--help").output().is_err() {
            return skipped(&format!("{program} is not installed"));
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/bench/instrument.py");
    let mut child = Command::new("python3")
        .arg(script)
        .args([PROBE, "--pairs", "1", "--further", "0", "--seconds", "2"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let words = String::from_utf8_lossy(&output.stderr);
    if words.contains("Unable to change scheduling policy") || words.contains("SCHED_FIFO") {
        return skipped(&words);
    }
    // Whether the ratios are good is for `make bench` to say, on a machine that does nothing else.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}{words}");
    assert!(said.contains("median ratio probe/cyclictest, minimum"), "{said}{words}");
}
