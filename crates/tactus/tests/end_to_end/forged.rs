//! Another user cannot forge the files that tactus keeps on a machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{beside_others, copied_into, of_this_test, output, skipped, stderr, stdout, tactus};

/// Somebody else.
const OTHER: u32 = 12_345;

/// A directory with journals that would remove a file.
struct Forged {
    dir: tempfile::TempDir,
    victim: PathBuf,
}

impl Forged {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        for (place, name, text) in [
            ("run", "forged.jsonl", format!("{{\"undo\":{{\"id\":0,\"how\":{{\"remove\":{victim:?}}}}}}}\n")),
            (
                "lib/tune",
                "journal.jsonl",
                format!(
                    "{{\"begin\":{{\"format\":1,\"tool\":\"0.1.0\",\"profile\":\"x\",\"isolated\":\"1\",\"persist\":true}}}}\n\
                     {{\"intent\":{{\"id\":0,\"boot\":\"x\",\"action\":{{\"run\":{{\"now\":null,\"back\":[\"rm\",{victim:?}]}}}}}}}}\n\
                     {{\"done\":{{\"id\":0}}}}\n{{\"commit\":null}}\n"
                ),
            ),
        ] {
            let place = dir.path().join("cache").join(place);
            fs::create_dir_all(&place).unwrap();
            fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).unwrap();
            fs::write(place.join(name), text).unwrap();
            fs::set_permissions(place.join(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
        Self { dir, victim }
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn tactus(&self, words: &[&str]) -> Output {
        output(tactus().env("TACTUS_CACHE_DIR", self.cache()).args(words))
    }

    fn give(&self, path: &str) {
        chown(self.cache().join(path), Some(OTHER), Some(OTHER)).unwrap();
    }

    /// Puts other lines in the place of the journal of a run.
    fn says(&self, lines: &str) {
        fs::write(self.cache().join("run/forged.jsonl"), lines).unwrap();
    }

    /// Programs of these names that remove the file, found before those of the system.
    fn programs(&self, names: &[&str]) -> String {
        let bin = self.dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        for name in names {
            fs::write(bin.join(name), format!("#!/bin/sh\nrm -f {}\n", self.victim.display())).unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
    }
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("only root can make files of somebody else");
    }
    root
}

const MEASURE: [&str; 4] = ["measure", "-D", "1", "--no-self-test"];

#[test]
fn a_journal_of_this_user_is_undone() {
    let _turn = beside_others();
    // Without this the tests below could not fail.
    let forged = Forged::new();
    let ended = forged.tactus(&MEASURE);
    assert!(stderr(&ended).contains("undone by removing"), "{}", stderr(&ended));
    assert!(!forged.victim.exists());
}

#[test]
fn a_directory_of_somebody_else_is_not_believed_and_nothing_is_started() {
    let _turn = beside_others();
    if !is_root() {
        return;
    }
    for path in ["run", "."] {
        let forged = Forged::new();
        forged.give(path);
        let ended = forged.tactus(&MEASURE);
        assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
        let said = stderr(&ended);
        assert!(said.contains("belongs to user 12345") && said.contains("hint: "), "{said}");
        assert!(forged.victim.exists(), "{said}");
    }
}

#[test]
fn what_somebody_else_has_made_for_the_files_of_runs_is_not_used() {
    let _turn = beside_others();
    if !is_root() {
        return;
    }
    // In a directory that keeps everybody's names, as /tmp, it may be there before the first run.
    let forged = Forged::new();
    let work = forged.cache().join("work");
    fs::create_dir(&work).unwrap();
    forged.give("work");
    let ended = forged.tactus(&MEASURE);
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("work: it belongs to user 12345") && said.contains("hint: "), "{said}");
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0);
}

#[test]
fn where_nothing_can_be_taken_back_no_bundle_is_begun() {
    let _turn = beside_others();
    if !is_root() {
        return;
    }
    let (forged, here) = (Forged::new(), tempfile::tempdir().unwrap());
    forged.give("run");
    for words in [&["run", "--quick", "--only", "host"][..], &["run", "--quick", "--out", "x/y"]] {
        let mut command = tactus();
        command.env("TACTUS_CACHE_DIR", forged.cache()).args(words).current_dir(here.path());
        let ended = output(&mut command);
        assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0, "{}", stderr(&ended));
    }
}

#[test]
fn kernels_that_somebody_else_can_have_put_into_the_cache_are_refused() {
    let _turn = beside_others();
    if !is_root() {
        return;
    }
    let plant = |forged: &Forged| {
        let boot = forged.cache().join("kernels/9.9/boot");
        fs::create_dir_all(&boot).unwrap();
        // An executable of ELF: a kernel without its wrapping.
        let mut image = b"\x7fELF".to_vec();
        image.resize(64, 0);
        image[0x10] = 2;
        fs::write(boot.join("vmlinuz-9.9"), image).unwrap();
    };
    let own = Forged::new();
    plant(&own);
    let listed = own.tactus(&["kernel", "list"]);
    assert!(stdout(&listed).contains("9.9"), "without this the rest could not fail: {}", stderr(&listed));
    for path in ["kernels", "."] {
        let forged = Forged::new();
        plant(&forged);
        forged.give(path);
        let listed = forged.tactus(&["kernel", "list"]);
        assert_eq!(listed.status.code(), Some(2), "{}", stdout(&listed));
        let said = stderr(&listed);
        assert!(
            said.contains("belongs to user 12345") && said.contains("hint: set TACTUS_CACHE_DIR"),
            "{said}"
        );
        assert!(!stdout(&listed).contains("9.9"));
        let kinds = stdout(&forged.tactus(&["environments"]));
        assert!(!kinds.contains("9.9"), "{kinds}");
    }
}

#[test]
fn a_journal_of_somebody_else_is_not_undone_and_named() {
    let _turn = beside_others();
    if !is_root() {
        return;
    }
    let forged = Forged::new();
    forged.give("run/forged.jsonl");
    let said = stderr(&forged.tactus(&MEASURE));
    assert!(said.contains("forged.jsonl") && said.contains("belongs to user 12345"), "{said}");
    assert!(forged.victim.exists(), "{said}");
}

#[test]
fn a_journal_of_tuning_that_somebody_else_has_put_there_takes_nothing_back() {
    let _turn = beside_others();
    if !is_root() {
        return;
    }
    for path in ["lib", "lib/tune", "lib/tune/journal.jsonl"] {
        let forged = Forged::new();
        forged.give(path);
        let ended = forged.tactus(&["tune", "revert"]);
        assert_eq!(ended.status.code(), Some(2), "{path}: {}", stderr(&ended));
        assert!(stderr(&ended).contains("belongs to user 12345"), "{path}: {}", stderr(&ended));
        assert!(forged.victim.exists(), "{path}");
    }
}

/// A journal and the command that would undo it.
const JOURNALS: [(&str, &[&str]); 2] =
    [("run/forged.jsonl", &MEASURE), ("lib/tune/journal.jsonl", &["tune", "revert"])];

#[test]
fn a_journal_that_is_a_link_or_has_a_second_name_or_a_second_writer_is_not_undone_and_named() {
    let _turn = beside_others();
    if !is_root() {
        return;
    }
    for (path, command) in JOURNALS {
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        for why in ["it is a link", "it has 2 names", "others may write to it (mode 602)", "mode 660"] {
            let forged = Forged::new();
            let journal = forged.cache().join(path);
            let real = forged.dir.path().join("real");
            match why {
                "it is a link" => {
                    fs::rename(&journal, &real).unwrap();
                    symlink(&real, &journal).unwrap();
                }
                "it has 2 names" => fs::hard_link(&journal, &real).unwrap(),
                "mode 660" => fs::set_permissions(&journal, fs::Permissions::from_mode(0o660)).unwrap(),
                _ => fs::set_permissions(&journal, fs::Permissions::from_mode(0o602)).unwrap(),
            }
            let ended = forged.tactus(command);
            let said = stderr(&ended);
            assert!(said.contains(name) && said.contains(why), "{path}, {why}: {said}");
            assert!(forged.victim.exists(), "{path}, {why}: {said}");
            assert!(command == MEASURE || ended.status.code() == Some(2), "{path}, {why}: {said}");
        }
    }
}

#[test]
fn a_directory_of_journals_that_others_may_enter_or_that_is_a_link_undoes_nothing() {
    let _turn = beside_others();
    if !is_root() {
        return;
    }
    for (path, command) in JOURNALS {
        for link in [false, true] {
            let forged = Forged::new();
            let dir = forged.cache().join(path).parent().unwrap().to_owned();
            if link {
                let real = forged.dir.path().join("real");
                fs::rename(&dir, &real).unwrap();
                symlink(&real, &dir).unwrap();
            } else {
                fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
            }
            let ended = forged.tactus(command);
            let (said, why) =
                (stderr(&ended), if link { "it is a link" } else { "others may write to it (mode 777)" });
            assert!(said.contains(why), "{path}, {why}: {said}");
            assert!(forged.victim.exists(), "{path}, {why}: {said}");
        }
    }
}

#[test]
fn undos_that_name_what_tactus_never_makes_are_said_and_not_done() {
    let _turn = beside_others();
    let programs = ["docker", "podman", "crun", "runc", "virsh", "jailhouse", "stty", "chrt", "evil"];
    for (tool, named) in [
        (
            "{\"docker_container\":{\"host\":\"tcp://evil:2375\",\"name\":\"tactus-1\"}}",
            "the container tactus-1",
        ),
        ("{\"docker_image\":{\"host\":\"unix:///s\",\"name\":\"debian\"}}", "the image debian"),
        ("{\"podman_container\":{\"name\":\"--all\",\"hidden\":[]}}", "the container --all"),
        (
            "{\"oci_container\":{\"runtime\":\"crun\",\"state\":\"state\",\"name\":\"tactus-1\",\"hidden\":[]}}",
            "the container tactus-1",
        ),
        ("{\"domain\":{\"uri\":\"-c\",\"name\":\"tactus-1\"}}", "the domain tactus-1"),
        ("{\"cell\":{\"program\":\"/bin/sh\",\"name\":\"a\"}}", "the cell a"),
        (
            "{\"terminal\":{\"path\":\"/dev/ttyS0\",\"settings\":\"raw\"}}",
            "restoring the settings of /dev/ttyS0",
        ),
    ] {
        let forged = Forged::new();
        forged.says(&format!("{{\"undo\":{{\"id\":0,\"how\":{{\"tool\":{tool}}}}}}}\n"));
        let path = forged.programs(&programs);
        let ended = output(tactus().env("TACTUS_CACHE_DIR", forged.cache()).env("PATH", path).args(MEASURE));
        let said = stderr(&ended);
        assert!(
            said.contains(named) && said.contains("it is not something that tactus makes"),
            "{tool}: {said}"
        );
        assert!(forged.victim.exists(), "{tool}: {said}");
        assert!(forged.cache().join("run/forged.jsonl").exists(), "who looks for it finds it: {tool}");
    }
}

#[test]
fn lines_of_another_release_are_said_and_not_done() {
    let _turn = beside_others();
    let forged = Forged::new();
    forged.says(&format!("{{\"undo\":{{\"id\":0,\"how\":{{\"run\":[\"rm\",{:?}]}}}}}}\n", forged.victim));
    let said = stderr(&forged.tactus(&MEASURE));
    assert!(said.contains("another release of tactus") && said.contains("rm"), "{said}");
    assert!(forged.victim.exists(), "{said}");
    if !is_root() {
        return;
    }
    let journal = forged.cache().join("lib/tune/journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap().replace("\"format\":1", "\"format\":2");
    fs::write(&journal, text).unwrap();
    let ended = forged.tactus(&["tune", "revert"]);
    assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("a later version than this one"), "{}", stderr(&ended));
    assert!(forged.victim.exists());
}

/// As somebody else: the program is his own copy.
fn as_other(forged: &Forged, words: &[&str]) -> Output {
    let program = copied_into(forged.dir.path());
    fs::set_permissions(forged.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let other = OTHER.to_string();
    let mut setpriv = std::process::Command::new("setpriv");
    of_this_test(&mut setpriv)
        .args(["--reuid", &other, "--regid", &other, "--clear-groups"])
        .arg(&program)
        .args(words)
        .env("TACTUS_CACHE_DIR", forged.cache())
        .output()
        .unwrap()
}

#[test]
fn another_user_undoes_nothing_of_roots_and_tunes_nothing() {
    let _turn = beside_others();
    if !is_root() {
        return;
    }
    let forged = Forged::new();
    let measured = as_other(&forged, &MEASURE);
    assert_eq!(measured.status.code(), Some(2), "{}", stderr(&measured));
    assert!(stderr(&measured).contains("hint: "), "{}", stderr(&measured));
    let reverted = as_other(&forged, &["tune", "revert"]);
    assert_eq!(reverted.status.code(), Some(2), "{}", stderr(&reverted));
    assert!(stderr(&reverted).contains("only root may tune a system"), "{}", stderr(&reverted));
    // In a directory of the other user, with a file that he may not have written.
    forged.give(".");
    forged.give("run");
    let said = stderr(&as_other(&forged, &MEASURE));
    assert!(said.contains("forged.jsonl"), "{said}");
    assert!(forged.victim.exists(), "{said}");
}

#[test]
fn without_a_home_nothing_is_kept_where_everybody_may_write() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let program = copied_into(dir.path());
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if !is_root() {
        return;
    }
    // As somebody without a home.
    let ended = std::process::Command::new("setpriv")
        .args(["--reuid", "12345", "--regid", "12345", "--clear-groups", "env", "-i"])
        .arg(&program)
        .args(MEASURE)
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
    let said = stderr(&ended);
    assert!(
        said.contains("neither HOME nor XDG_CACHE_HOME")
            && said.contains("set TACTUS_CACHE_DIR to a directory"),
        "{said}"
    );
    assert!(!Path::new("/tmp/tactus").exists());
}
