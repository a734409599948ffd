//! Every fuzz target is given its seeds, in a plain build. `make nightly` fuzzes them in an instrumented one.
#![expect(
    clippy::disallowed_methods,
    reason = "the seeds and the sample that targets write are files of the tests"
)]
#![expect(clippy::duplicate_mod, reason = "targets share modules, as programs of their own do")]

// The targets name the fuzzer's crate; here it is this file.
extern crate self as libfuzzer_sys;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Declares the targets as modules, with a test for each, and their names as `TARGETS`.
macro_rules! targets {
    ($($name:ident: $path:literal),* $(,)?) => {
        $(
            #[path = $path]
            mod $name;
        )*

        const TARGETS: &[&str] = &[$(stringify!($name)),*];

        mod every_seed_is_taken_by {
            $(
                #[test]
                fn $name() {
                    super::replay(stringify!($name), |seed| {
                        super::$name::take(seed);
                    });
                }
            )*
        }
    };
}

/// Whether a fuzzer keeps an input.
pub(crate) enum Corpus {
    Keep,
    Reject,
}

targets! {
    audit: "../../../../fuzz/fuzz_targets/audit.rs",
    bundle: "../../../../fuzz/fuzz_targets/bundle.rs",
    cells: "../../../../fuzz/fuzz_targets/cells.rs",
    conversation: "../../../../fuzz/fuzz_targets/conversation.rs",
    domain_xml: "../../../../fuzz/fuzz_targets/domain_xml.rs",
    facts: "../../../../fuzz/fuzz_targets/facts.rs",
    histogram_log: "../../../../fuzz/fuzz_targets/histogram_log.rs",
    import: "../../../../fuzz/fuzz_targets/import.rs",
    kernel_image: "../../../../fuzz/fuzz_targets/kernel_image.rs",
    lines: "../../../../fuzz/fuzz_targets/lines.rs",
    marks: "../../../../fuzz/fuzz_targets/marks.rs",
    plan: "../../../../fuzz/fuzz_targets/plan.rs",
    qemu_answers: "../../../../fuzz/fuzz_targets/qemu_answers.rs",
    run_journal: "../../../../fuzz/fuzz_targets/run_journal.rs",
    timerlat: "../../../../fuzz/fuzz_targets/timerlat.rs",
    tune_journal: "../../../../fuzz/fuzz_targets/tune_journal.rs",
    wire: "../../../../fuzz/fuzz_targets/wire.rs",
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// All files below a directory.
fn files(place: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(place).unwrap_or_else(|error| panic!("{}: {error}", place.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Gives a target the empty input and its seeds, and names those at which it panics.
fn replay(target: &str, mut take: impl FnMut(&[u8])) {
    let mut seeds = Vec::new();
    files(&fuzz().join("seeds").join(target), &mut seeds);
    if target == "import" {
        files(&fuzz().join("../crates/tactus-format/tests/field"), &mut seeds);
    }
    assert!(!seeds.is_empty(), "{target} has no seed");
    take(&[]);
    let mut panics = |seed: &PathBuf| {
        let bytes = fs::read(seed).unwrap();
        catch_unwind(AssertUnwindSafe(|| take(&bytes))).is_err()
    };
    seeds.retain(&mut panics);
    assert!(seeds.is_empty(), "{target} panics at {seeds:#?}");
}

#[test]
fn every_fuzz_target_is_replayed_and_is_built_for_the_fuzzer() {
    let declared = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let mut sources = Vec::new();
    files(&fuzz().join("fuzz_targets"), &mut sources);
    sources.retain(|source| fs::read_to_string(source).unwrap().contains("\nfuzz_target!("));
    let mut names: Vec<_> =
        sources.iter().map(|source| source.file_stem().unwrap().to_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, TARGETS);
    for name in names {
        assert!(
            declared.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name} is not in fuzz/Cargo.toml"
        );
    }
}

/// Stands in for the fuzzer's macro of this name: makes a function that takes one input. It must come after the
/// targets, which import the real one.
macro_rules! fuzz_target {
    (|$data:ident: &[u8]| $body:block) => {
        pub(crate) fn take($data: &[u8]) {
            $body
        }
    };
    (|$data:ident: &[u8]| -> Corpus $body:block) => {
        pub(crate) fn take($data: &[u8]) -> Corpus {
            $body
        }
    };
    (|$data:ident: &str| -> Corpus $body:block) => {
        pub(crate) fn take(bytes: &[u8]) -> Corpus {
            let Ok($data) = std::str::from_utf8(bytes) else { return Corpus::Reject };
            $body
        }
    };
}
pub(crate) use fuzz_target;
