//! One measurement at a time on a machine; what a bundle says of machine and job; capabilities of a file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::common::{
    await_tick, copied_into, json, measures_beside_others, nothing_is_left, output, stderr, tactus,
};

#[test]
fn a_second_run_is_refused_or_waits_or_measures_beside_with_a_note_in_the_bundle() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("first");
    let second = |words: &[&str]| {
        output(tactus().args(["measure", "-D", "1", "-q", "--no-self-test", "--json"]).args(words))
    };
    let mut running = tactus()
        .args(["measure", "-D", "60", "-q", "--no-self-test", "--out"])
        .arg(&first)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    await_tick(&first);
    let refused = second(&[]);
    assert_eq!(refused.status.code(), Some(2));
    let words = stderr(&refused);
    assert!(
        words.contains(&format!("process {} (tactus) is already measuring this machine", running.id())),
        "{words}"
    );
    assert!(words.contains("hint: wait for its end with --wait"), "{words}");
    let impatient = second(&["--wait", "300ms"]);
    assert_eq!(impatient.status.code(), Some(2));
    assert!(stderr(&impatient).contains("is still measuring this machine"), "{}", stderr(&impatient));
    let other = dir.path().join("other");
    let beside = second(&["--beside", "--out", other.to_str().unwrap()]);
    assert!(beside.status.success(), "{}", stderr(&beside));
    let events = fs::read_to_string(other.join("events.jsonl")).unwrap();
    assert!(events.contains("measured this machine at the same time"), "{events}");
    // A waiting run starts when the first one is gone, even if that one was killed.
    let waiting = std::thread::spawn({
        let mut command = tactus();
        command.args(["measure", "-D", "1", "-q", "--no-self-test", "--json", "--wait", "2m"]);
        move || output(&mut command)
    });
    running.kill().unwrap();
    running.wait().unwrap();
    let waited = waiting.join().unwrap();
    assert!(waited.status.success(), "{}", stderr(&waited));
    assert_eq!(json(&waited)["scenarios"][0]["status"], "measured");
}

#[test]
fn a_bundle_says_which_machine_and_which_job_it_is_of() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let manifest = |name: &str, job: &str| {
        let bundle = dir.path().join(name);
        let mut command = tactus();
        command.args(["measure", "-D", "1", "-q", "--no-self-test", "--out"]).arg(&bundle);
        command.env("TACTUS_MACHINE", "rack 3").env("TACTUS_JOB", job);
        assert!(output(&mut command).status.success());
        serde_json::from_slice::<serde_json::Value>(&fs::read(bundle.join("manifest.json")).unwrap()).unwrap()
    };
    let (one, two) = (manifest("one", "slurm:7"), manifest("two", ""));
    assert_eq!(one["machine"]["name"], "rack 3");
    assert_eq!(one["sessions"][0]["job"]["engine"], "slurm");
    assert_eq!(one["sessions"][0]["job"]["id"], "7");
    assert_eq!(two["sessions"][0].get("job"), None);
    assert_eq!(one["machine"]["id"], two["machine"]["id"], "of one machine");
    if let Ok(id) = fs::read_to_string("/etc/machine-id") {
        assert!(!one.to_string().contains(id.trim()), "the machine's own number is told to nobody");
    }
}

#[test]
fn an_ordinary_user_measures_with_the_capabilities_of_the_file_and_not_without() {
    let Some(_turn) = measures_beside_others() else { return };
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("setcap") || !has("runuser") {
        assert!(
            std::env::var_os("TACTUS_TEST_ALL").is_none(),
            "setcap (libcap2-bin) and runuser are not installed"
        );
        eprintln!("skipped: setcap or runuser is not installed");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = copied_into(place.path());
    let measured_with = |words: &[&str]| {
        let mut command = Command::new("runuser");
        command.args(["-u", "nobody", "--"]).arg(&program).args(words).current_dir("/").stdin(Stdio::null());
        output(command.env("TACTUS_CACHE_DIR", place.path().join("cache")).env("TACTUS_LOCK", "setcap"))
    };
    let cache = place.path().join("cache");
    fs::create_dir(&cache).unwrap();
    assert!(Command::new("chown").arg("nobody").arg(&cache).status().unwrap().success());
    let words = ["measure", "-D", "1", "-p", "80", "--json"];
    let refused = measured_with(&words);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let capable = Command::new("setcap").arg("cap_sys_nice,cap_ipc_lock+ep").arg(&program).status().unwrap();
    assert!(capable.success());
    let measured = measured_with(&words);
    let document = json(&measured);
    let row = &document["scenarios"][0];
    assert_eq!(row["status"], "measured", "{row}\n{}", stderr(&measured));
    assert_eq!(row["series"][0]["priority"], 80, "{row}");
    // A plan's command has none of them, and what it has put behind itself is seen by who ends it.
    let (command, said) = (place.path().join("command"), place.path().join("cache/said"));
    let script = format!(
        "#!/bin/sh\ngrep ^Cap /proc/self/status > {}\nsetsid sleep 777 &\nexec sleep 100\n",
        said.display()
    );
    fs::write(&command, script).unwrap();
    fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
    let load = format!("command:{}", command.display());
    let loaded = measured_with(&["measure", "-D", "1", "-p", "80", "--no-self-test", "--load", &load]);
    let said = fs::read_to_string(&said).unwrap_or_else(|error| panic!("{error}: {}", stderr(&loaded)));
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        let own = said.lines().find_map(|line| line.strip_prefix(set)).unwrap();
        assert_eq!(own.trim(), "0000000000000000", "{set} {said}");
    }
    nothing_is_left();
}
