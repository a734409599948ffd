//! `make install` below another root: the installation is complete, and a user's program is built against its header
//! alone.

use std::fs;
use std::process::Command;

use crate::common::{skipped, stderr, stdout};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn the_examples_in_c_are_built_and_run_against_the_header_that_make_installs() {
    if Command::new("make").arg("--version").output().is_err() {
        return skipped("make is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let sbom = dir.path().join("tactus.cdx.json");
    fs::write(&sbom, "{}").unwrap();
    let made = Command::new("make")
        .args(["-C", ROOT, "install", concat!("TACTUS=", env!("CARGO_BIN_EXE_tactus")), "PREFIX=/usr"])
        .arg(format!("DESTDIR={}", dir.path().join("root").display()))
        .arg(format!("SBOM={}", sbom.display()))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let prefix = dir.path().join("root/usr");
    for file in [
        "bin/tactus",
        "share/doc/tactus/tactus.cdx.json",
        "share/man/man1/tactus.1",
        "share/bash-completion/completions/tactus",
        "share/zsh/site-functions/_tactus",
        "share/fish/vendor_completions.d/tactus.fish",
        "share/tactus/schema/show.schema.json",
        "share/tactus/contrib/grafana/tactus.json",
        "share/tactus/contrib/prometheus/tactus.rules.yml",
        "share/tactus/contrib/github-action/action.yml",
        "share/tactus/contrib/ansible/roles/tactus/tasks/main.yml",
    ] {
        assert!(fs::metadata(prefix.join(file)).is_ok_and(|of| of.len() > 0), "{file}");
    }
    let version = Command::new(prefix.join("bin/tactus")).arg("--version").output().unwrap();
    assert!(stdout(&version).starts_with("tactus "), "{}", stderr(&version));

    let guide = fs::read_to_string(format!("{ROOT}/docs/guide/application.md")).unwrap();
    let (_, from) = guide.split_once("```c\n").expect("the guide has a program in C");
    let guide = from.split_once("```").unwrap().0.to_owned();
    let example = fs::read_to_string(format!("{ROOT}/examples/application/cycle.c")).unwrap();
    for (name, text, words) in
        [("guide", guide, &["20"][..]), ("cycle", example, &["1000", "20", "5", "2"][..])]
    {
        // Beside no other file: the header is the installed one, or none.
        let source = dir.path().join(format!("{name}.c"));
        fs::write(&source, text).unwrap();
        let program = dir.path().join(name);
        let built = Command::new("cc")
            .args(["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(prefix.join("include"))
            .arg("-o")
            .arg(&program)
            .arg(&source)
            .output()
            .unwrap();
        assert!(built.status.success(), "{name}: {}", stderr(&built));
        let marks = dir.path().join(format!("{name}-marks"));
        let ran = Command::new(&program).arg(&marks).args(words).output().unwrap();
        assert!(ran.status.success(), "{name}: {}", stderr(&ran));
        assert!(!marks.exists(), "{name} took its file away when it closed it");
    }
}
