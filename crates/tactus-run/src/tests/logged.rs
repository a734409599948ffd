//! The log in the bundle of a run that broke.

use super::*;
use crate::log;

#[test]
fn the_bundle_of_a_run_that_broke_has_the_log_and_that_of_a_good_one_has_none() {
    let [broken, good] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    tracing::subscriber::with_default(log::log(None, |_| {}), || {
        for n in 0..2 * log::KEPT {
            tracing::info!("\u{1b}]0;title\u{7} {n} {}", "x".repeat(2 * log::LONGEST_LINE));
        }
        perform(&[("dies", &DIES)], broken.path(), false);
        perform(&[("good", &GOOD)], good.path(), false);
    });
    let [broken, good] = [&broken, &good].map(|dir| dir.path().join("bundle"));
    let path = broken.join(bundle::LOG);
    let text = String::from_utf8(Real.read(&path).unwrap()).unwrap();
    assert_eq!(text.lines().count(), log::KEPT);
    assert!(text.lines().all(|line| line.len() <= log::LONGEST_LINE));
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    for said in ["environment dies starts", "measuring ended: failed", "Kernel panic - not syncing"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let manifest = bundle::manifest(&Directory::open(&broken).unwrap()).unwrap();
    assert!(manifest.files.contains_key(bundle::LOG), "its checksum holds it: {:?}", manifest.files);
    assert!(!Real.exists(&good.join(bundle::LOG)), "nothing broke");

    // A file that is put there later, or altered, is not believed.
    Real.write(&path, b"forged\n").unwrap();
    assert!(bundle::read(&broken, Trust::Whole).is_err());
    Real.write(&good.join(bundle::LOG), b"forged\n").unwrap();
    assert!(bundle::read(&good, Trust::Whole).is_err());
}
