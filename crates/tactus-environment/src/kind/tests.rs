//! Rules for every kind of environment that can be checked without starting one; the rules that need a running one
//! are in `tests/contract.rs`.

use std::collections::BTreeSet;
use std::path::Path;

use tactus_model::facts::Facts;
use tactus_model::plan;
use tactus_model::topology::Topology;
use tactus_system::{Memory, Real, System};

use super::MODULES;
use crate::{ENVIRONMENTS, Usable, find};

/// Files of `kind/` that do not define an environment.
const HELPERS: [&str; 2] = ["mod", "tests"];

#[test]
fn every_file_is_in_the_table_and_its_name_is_its_kind() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kind");
    let files: BTreeSet<String> = Real
        .list(&dir)
        .unwrap()
        .iter()
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| !HELPERS.contains(&name.as_str()))
        .collect();
    let modules: BTreeSet<String> = MODULES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(files, modules, "a file of kind/ is missing from the registry");
    let kinds: Vec<&str> = ENVIRONMENTS.iter().map(|environment| environment.kind()).collect();
    assert_eq!(kinds, MODULES);
    for kind in kinds {
        assert_eq!(find(kind).unwrap().kind(), kind);
    }
}

#[test]
fn every_environment_explains_itself_and_its_keys() {
    for environment in ENVIRONMENTS {
        let kind = environment.kind();
        assert!(environment.about().len() > 80 && environment.about().ends_with('.'), "{kind}");
        let mut names = BTreeSet::new();
        for option in environment.options() {
            assert!(
                option.about.contains("default: "),
                "{kind}.{}: says nothing of its default",
                option.name
            );
            assert!(names.insert(option.name), "{kind}.{} is there twice", option.name);
            assert!(!["kind", "cpus", "inside", "attach"].contains(&option.name), "{kind}.{}", option.name);
        }
    }
}

#[test]
fn an_empty_machine_has_nothing_but_its_host_and_lines_and_says_what_would_help() {
    for machine in [Memory::new(), Memory::new().root()] {
        for environment in ENVIRONMENTS {
            match environment.usable(&machine) {
                Usable::Yes { .. } => assert!(["host", "serial"].contains(&environment.kind())),
                Usable::No { reason, remedy } => {
                    assert!(reason.contains("install"), "{}: {reason}", environment.kind());
                    assert!(remedy.contains("install"), "{}: {remedy}", environment.kind());
                }
            }
        }
    }
}

#[test]
fn every_environment_refuses_wrong_values_of_its_keys_and_accepts_none() {
    for environment in ENVIRONMENTS {
        let mut spec = plan::Environment { kind: environment.kind().into(), ..plan::Environment::default() };
        assert_eq!(environment.check(&spec, &Memory::new()), Ok(()));
        for option in environment.options() {
            spec.options =
                [(option.name.to_owned(), serde_json::json!({"no": "table"}))].into_iter().collect();
            let error = environment.check(&spec, &Memory::new()).expect_err(option.name);
            assert_eq!(error.key, option.name, "{}", environment.kind());
            assert!(!error.hint.is_empty() && error.message.contains(option.name), "{error:?}");
        }
    }
}

#[test]
fn a_layout_uses_the_given_cpus_and_measures_on_some_of_them() {
    let mut facts = Facts::default();
    facts.keep("/sys/devices/system/cpu/online", "0-7");
    facts.keep("/sys/devices/system/cpu/isolated", "4-7");
    let machine = Topology::of(&facts);
    for environment in ENVIRONMENTS {
        for (cpus, chosen) in [("0-7", false), ("0,4-5", true), ("5", true), ("1-2", false)] {
            let layout = environment.layout(&cpus.parse().unwrap(), chosen, &machine);
            let name = format!("{} on {cpus}", environment.kind());
            let given = cpus.parse::<tactus_model::CpuSet>().unwrap();
            // Without an operating system there is one CPU.
            let expected = if environment.has_system() { given.len() } else { 1 };
            assert_eq!(layout.outside().and(&given).len(), expected, "{name}");
            assert!(!layout.measuring.is_empty(), "{name}");
            assert!(
                layout.measuring.minus(&layout.inside()).is_empty(),
                "{name}: measures where it has no CPU"
            );
            assert_eq!(layout.inside().len(), layout.outside().len(), "{name}");
            if environment.numbers_cpus() {
                let expected: Vec<u32> = (0..).take(layout.cpus.len()).collect();
                assert_eq!(layout.inside().iter().collect::<Vec<_>>(), expected, "{name}");
            }
        }
    }
}
