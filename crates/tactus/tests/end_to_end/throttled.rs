//! A measurement whose cgroup has a quota of CPU time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{beside_others, json, of_this_test, output, skipped, stderr, stdout, tactus};

/// A cgroup with a quota of 20 ms in every 100 ms, and a name that is no run's.
struct Quota(PathBuf);

impl Quota {
    fn create() -> Result<Self, String> {
        let name = format!("quota-{}", std::process::id());
        let of = |mount: &str, files: &[(&str, &str)]| {
            let group = Self(Path::new(mount).join(&name));
            fs::create_dir(&group.0).map_err(|error| format!("{}: {error}", group.0.display()))?;
            for (file, text) in files {
                fs::write(group.0.join(file), text).map_err(|error| format!("{mount}: {file}: {error}"))?;
            }
            Ok(group)
        };
        let one = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")];
        of("/sys/fs/cgroup/cpu", &one).or_else(|_| of("/sys/fs/cgroup", &[("cpu.max", "20000 100000")]))
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_measurement_that_a_quota_stopped_names_the_cgroup() {
    let _turn = beside_others();
    let quota = match Quota::create() {
        Ok(quota) => quota,
        Err(why) => return skipped(&format!("no cgroup with a CPU quota can be created here: {why}")),
    };
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bundle");
    let mut command = Command::new("sh");
    command.args(["-c", r#"echo $$ > "$0/cgroup.procs" && exec "$@""#]).arg(&quota.0);
    command.arg(env!("CARGO_BIN_EXE_tactus"));
    command.args(["measure", "--policy", "other", "--load", "cpu", "-D", "2s", "--no-self-test", "--out"]);
    let measured = output(of_this_test(command.arg(&bundle)));
    assert_eq!(measured.status.code(), Some(0), "{}", stderr(&measured));
    let report = |options: &[&str]| output(tactus().arg("report").arg(&bundle).args(options));
    let group = format!(", by /{}", quota.0.file_name().unwrap().display());
    let document = json(&report(&["--json"]));
    let notes = document["scenarios"][0]["notes"].as_array().unwrap();
    let told = |note: &&serde_json::Value| {
        let text = note["text"].as_str().unwrap();
        text.starts_with("throttled ") && text.contains(&group)
    };
    assert_eq!(notes.iter().filter(told).count(), 1, "{notes:#?}");
    let screen = stdout(&report(&[]));
    let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("Throttled ") && flat.contains(&group), "the answer names it: {screen}");
}
