//! Links that other users plant where tactus writes, and commands in a bundle's plan: tactus writes through no link,
//! and runs none of these commands.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tactus_bundle::Writer;
use tactus_model::bundle::{Asked, Machine, RowResult};
use tactus_model::event::RunStatus;
use tactus_run::plan::{Source, parse, study};

use crate::common::{
    beside_others, json, measures_beside_others, nothing_is_left, output, skipped, stderr, tactus,
};

/// Facts of a machine, for what is generated from them.
const FACTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-audit/tests/machines/debian-rt.json");

/// A bundle of a plan, as a stranger may send it.
fn bundle(dir: &Path, plan: &str, finished: bool) {
    let plan = parse(&Source::new("plan.toml", plan)).unwrap();
    let row = RowResult::unmeasured("host idle", "host", "host");
    let mut writer = Writer::create(dir, &plan, &[row], Machine::default()).unwrap();
    writer.keep_source(&plan, Asked::default()).unwrap();
    if finished {
        writer.finish(RunStatus::Complete).unwrap();
    }
}

const HOST: &str = r#"
name = "x"
[environment.host]
kind = "host"
[[scenario]]
name = "host idle"
environment = "host"
duration = "1s"
"#;

/// Every command that writes a file, and which one: from a directory with a bundle on.
const WRITERS: &[(&[&str], &str)] = &[
    (&["report", "bundle", "--html"], "bundle/report.html"),
    (&["report", "bundle", "--out", "out"], "out"),
    (&["report", "bundle", "--format", "text", "--out", "out"], "out"),
    (&["report", "bundle", "--format", "json", "--out", "out"], "out"),
    (&["report", "bundle", "--format", "markdown", "--out", "out"], "out"),
    (&["report", "bundle", "--format", "svg", "--out", "out"], "out"),
    (&["tune", "files", "grub", "--from", FACTS, "--force", "--out", "out"], "out"),
    (
        &["tune", "files", "tuned", "--from", FACTS, "--force", "--out", "pages/"],
        "pages/tactus-realtime/tuned.conf",
    ),
    (&["man", "--out", "pages"], "pages/tactus.1"),
    (&["probe", "--out", "out"], "out"),
];

#[test]
fn no_command_writes_through_what_was_planted_where_it_writes() {
    let _turn = beside_others();
    for (arguments, target) in WRITERS {
        for plant in ["link", "dangling link", "hard link", "nothing"] {
            let home = tempfile::tempdir().unwrap();
            bundle(&home.path().join("bundle"), HOST, true);
            fs::create_dir(home.path().join("pages")).unwrap();
            let (outside, new) = (home.path().join("outside"), home.path().join("new"));
            fs::write(&outside, "kept").unwrap();
            let target = home.path().join(target);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            match plant {
                "link" => symlink(&outside, &target).unwrap(),
                "dangling link" => symlink(&new, &target).unwrap(),
                "hard link" => fs::hard_link(&outside, &target).unwrap(),
                _ => {}
            }
            let done = output(tactus().args(*arguments).current_dir(home.path()));
            let what = format!("{arguments:?}, {plant}: {}", stderr(&done));
            assert_eq!(fs::read_to_string(&outside).unwrap(), "kept", "{what}");
            assert!(!new.exists(), "{what}");
            // It says so, or its own file is in the place of what was planted.
            let own = || {
                let found = fs::symlink_metadata(&target).unwrap();
                found.is_file() && found.nlink() == 1 && found.len() > 0
            };
            assert!(
                if plant == "nothing" {
                    done.status.success() && own()
                } else {
                    !done.status.success() || own()
                },
                "{what}"
            );
            if !done.status.success() {
                assert!(what.contains("symbolic link") && what.contains("hint:"), "{what}");
            }
        }
    }
}

#[test]
fn a_directory_that_was_planted_beneath_the_named_one_is_not_entered() {
    let _turn = beside_others();
    let home = tempfile::tempdir().unwrap();
    let (pages, elsewhere) = (home.path().join("pages"), home.path().join("elsewhere"));
    fs::create_dir(&pages).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, pages.join("tactus-realtime")).unwrap();
    let mut generate = tactus();
    generate.args(["tune", "files", "tuned", "--from", FACTS, "--force", "--out", "pages/"]);
    let done = output(generate.current_dir(home.path()));
    assert!(!done.status.success() && stderr(&done).contains("symbolic link"), "{}", stderr(&done));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn what_is_no_file_is_not_replaced_by_one() {
    let _turn = beside_others();
    let home = tempfile::tempdir().unwrap();
    bundle(&home.path().join("bundle"), HOST, true);
    let done = output(tactus().args(["report", "bundle", "--out", "/dev/full"]).current_dir(home.path()));
    assert!(!done.status.success() && stderr(&done).contains("it is a device"), "{}", stderr(&done));
    assert!(!fs::metadata("/dev/full").unwrap().is_file());
}

#[test]
fn a_run_writes_only_where_no_other_user_can() {
    let _turn = beside_others();
    let home = tempfile::tempdir().unwrap();
    let plan = home.path().join("plan.toml");
    fs::write(&plan, HOST).unwrap();
    let shared = home.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    for option in ["--out", "--into"] {
        let done = output(tactus().arg("run").arg(&plan).arg(option).arg(&shared));
        let said = stderr(&done);
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains("others may write to it") && said.contains("hint:"), "{said}");
        assert_eq!(fs::read_dir(&shared).unwrap().count(), 0);
    }
}

#[test]
fn a_bundle_whose_name_is_given_to_another_while_it_is_written_stays_the_one_that_was_begun() {
    let Some(_turn) = measures_beside_others() else { return };
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::write(at("plan.toml"), format!("{HOST}measurement = \"timer\"\n")).unwrap();
    fs::create_dir(at("victim")).unwrap();
    fs::write(at("victim/report.html"), "kept").unwrap();
    let mut run = tactus();
    run.args(["run", "plan.toml", "--duration", "3s", "--out", "bundle"]).current_dir(home.path());
    let mut running = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let ticks = at("bundle/scenarios/01-host-idle/ticks.csv");
    let until = Instant::now() + Duration::from_secs(60);
    while !ticks.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    // The owner of the directory above can do this, although the bundle belongs to another user.
    fs::rename(at("bundle"), at("moved")).unwrap();
    symlink(at("victim"), at("bundle")).unwrap();
    let mut said = String::new();
    running.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(matches!(running.wait().unwrap().code(), Some(0 | 3)), "{said}");
    assert_eq!(fs::read_to_string(at("victim/report.html")).unwrap(), "kept");
    assert_eq!(fs::read_dir(at("victim")).unwrap().count(), 1);
    assert!(fs::metadata(at("moved/report.html")).unwrap().len() > 0, "{said}");
    let shown = json(&output(tactus().args(["report", "moved", "--json"]).current_dir(home.path())));
    assert_eq!(shown["status"], "complete");
    nothing_is_left();
}

/// The plan of a bundle, its commands, and whether the bundle is then resumed.
#[test]
fn commands_of_a_bundle_are_named_and_run_only_when_they_are_trusted() {
    let _turn = beside_others();
    let home = tempfile::tempdir().unwrap();
    let ran = home.path().join("ran");
    let plan = format!("{HOST}load = {{ kind = \"command\", run = [\"touch\", {ran:?}] }}\n");
    let dir = home.path().join("bundle");
    bundle(&dir, &plan, false);
    let done = output(tactus().args(["run", "--into"]).arg(&dir));
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("scenario `host idle`: run = [\"touch\"") && said.contains("--trust"), "{said}");
    assert!(!ran.exists());
    // With `--trust` or the plan the run passes this check; the next one refuses it because the machine is another.
    let given = home.path().join("plan.toml");
    fs::write(&given, &plan).unwrap();
    for further in [PathBuf::from("--trust"), given] {
        let done = output(tactus().args(["run", "--into"]).arg(&dir).arg(further));
        let said = stderr(&done);
        assert!(said.contains("was begun on the machine") && !said.contains("--trust"), "{said}");
    }
    assert!(!ran.exists());
}

#[test]
fn a_study_is_gone_on_with_by_its_bundle_alone() {
    let _turn = beside_others();
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("bundle");
    bundle(&dir, study("osadl-2023").unwrap().text, false);
    let go_on = || stderr(&output(tactus().args(["run", "--into"]).arg(&dir)));
    assert!(go_on().contains("was begun on the machine"));
    // Its words with one more of somebody else's.
    let source = dir.join("source.toml");
    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replacen("\"BPF\"", "\"SYS_ADMIN\"", 1)).unwrap();
    let said = go_on();
    assert!(said.contains("SYS_ADMIN") && said.contains("--trust"), "{said}");
}

#[test]
fn a_bundle_of_another_user_is_not_gone_on_with_but_by_root_whom_that_user_called() {
    let _turn = beside_others();
    const OTHER: u32 = 65534;
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("bundle");
    bundle(&dir, HOST, false);
    for inside in ["", "facts", "audit", "scenarios", "scenarios/01-host-idle"] {
        if let Err(error) = chown(dir.join(inside), Some(OTHER), Some(OTHER)) {
            return skipped(&format!("chown: {error}"));
        }
    }
    let go_on = |caller: Option<u32>| {
        let mut command = tactus();
        command.args(["run", "--into"]).arg(&dir).env_remove("SUDO_UID");
        command.envs(caller.map(|uid| ("SUDO_UID", uid.to_string())));
        stderr(&output(&mut command))
    };
    for caller in [None, Some(OTHER - 1)] {
        let said = go_on(caller);
        assert!(said.contains("it belongs to another user (uid 65534)") && said.contains("hint:"), "{said}");
    }
    // It comes past this; the machine is another, which is refused next.
    assert!(go_on(Some(OTHER)).contains("was begun on the machine"));
}
