//! The Python whose packages read what was written. Also used by the tests of the data set.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The Python of `scripts/setup.sh test`, if it has these modules; says so if not.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "another program reads, or it is said that none does"
)]
pub fn python(modules: &str) -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let python = target.join("tools/bin/python3");
    let tried = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    let here = tried.is_ok_and(|out| out.status.success());
    if !here {
        assert!(
            std::env::var_os("TACTUS_TEST_ALL").is_none(),
            "{modules} are not installed (scripts/setup.sh test)"
        );
        eprintln!("SKIPPED: the Python packages {modules} are not installed (scripts/setup.sh test)");
    }
    here.then_some(python)
}
