//! Looks at a page with headless Chromium and axe-core, driven by a script. Also used by the tests of
//! `tactus watch --serve`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The validators of `scripts/setup.sh test`; axe-core is among them.
fn axe() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        |set| Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(set),
    );
    let lib = std::fs::read_dir(target.join("tools/lib")).ok()?;
    let all =
        lib.flatten().map(|python| python.path().join("site-packages/axe_playwright_python/axe.min.js"));
    all.into_iter().find(|path| path.is_file())
}

/// The command that runs `script` to look at pages, not started yet; `None`, with a message, if something is
/// missing.
#[expect(clippy::print_stderr, reason = "what is not tested is said")]
#[expect(
    clippy::disallowed_methods,
    reason = "another program opens the pages, and they are kept for people"
)]
pub fn looks(script: &str) -> Option<Command> {
    let lacks = |what: &str| {
        assert!(
            std::env::var_os("TACTUS_TEST_ALL").is_none(),
            "nothing may be skipped, and there is no {what}"
        );
        eprintln!("SKIPPED: there is no {what}; scripts/setup.sh test installs it");
    };
    if Command::new("chromium").arg("--version").output().is_err() {
        lacks("chromium");
        return None;
    }
    let Some(axe) = axe() else {
        lacks("axe-core");
        return None;
    };
    let mut look = Command::new("python3");
    look.arg(script).arg("--axe").arg(axe);
    // To be looked at by people: `SHOTS=DIR`.
    if let Some(shots) = std::env::var_os("SHOTS") {
        std::fs::create_dir_all(&shots).unwrap();
        look.arg("--shots").arg(shots);
    }
    Some(look)
}
