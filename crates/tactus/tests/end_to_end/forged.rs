//! What tactus keeps on a machine cannot be forged by somebody else.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{output, skipped, stderr, stdout, tactus};

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
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("only root can make files of somebody else");
    }
    root
}

const MEASURE: [&str; 4] = ["measure", "-D", "1", "--no-control"];

#[test]
fn a_journal_of_this_user_is_undone() {
    // Without this the tests below could not fail.
    let forged = Forged::new();
    let ended = forged.tactus(&MEASURE);
    assert!(stderr(&ended).contains("undone by removing"), "{}", stderr(&ended));
    assert!(!forged.victim.exists());
}

#[test]
fn a_directory_of_somebody_else_is_not_believed_and_nothing_is_started() {
    if !is_root() {
        return;
    }
    // In a directory that keeps everybody's names, as /tmp, the last may be there before the first run.
    for path in ["run", ".", "work"] {
        let forged = Forged::new();
        fs::create_dir(forged.cache().join("work")).unwrap();
        forged.give(path);
        let ended = forged.tactus(&MEASURE);
        assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
        let said = stderr(&ended);
        assert!(said.contains("belongs to user 12345") && said.contains("hint: "), "{said}");
        assert!(forged.victim.exists(), "{said}");
    }
}

#[test]
fn where_nothing_can_be_taken_back_no_bundle_is_begun() {
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

#[test]
fn without_a_home_nothing_is_kept_where_everybody_may_write() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("tactus");
    fs::copy(env!("CARGO_BIN_EXE_tactus"), &program).unwrap();
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
            && said.contains("set TACTUS_CACHE_DIR to a directory of your own"),
        "{said}"
    );
    assert!(!Path::new("/tmp/tactus").exists());
}
