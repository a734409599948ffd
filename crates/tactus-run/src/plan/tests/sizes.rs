//! Arrays that are told by the machine's caches.

use tactus_model::catalogue::Measure;

use super::*;
use crate::plan::PlanError;

const MEMORY: &str = r#"
name = "mine"
[environment.host]
kind = "host"
[environment.guest]
kind = "qemu"
[environment.board]
kind = "ssh"
to = "board"
[[scenario]]
name = "host"
environment = "host"
measurement = { kind = "memory", sizes = "1KiB..4xLLC" }
[[scenario]]
name = "guest"
environment = "guest"
measurement = "memory"
[[scenario]]
name = "board"
environment = "board"
measurement = "memory"
[[scenario]]
name = "named"
environment = "guest"
measurement = { kind = "memory", sizes = "4KiB..1MiB" }
"#;

/// A plan, on a machine whose CPUs have these caches.
fn resolved(text: &str, caches: &[(u32, u32, &str)]) -> Result<Resolved, PlanError> {
    let file = |system: Memory, (cpu, index, size): &(u32, u32, &str)| {
        system.file(format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/size"), *size)
    };
    let system = caches.iter().fold(Memory::new(), file);
    let source = Source::new("plan.toml", text);
    let plan = parse(&source).unwrap();
    check(&plan, &source, &system).unwrap();
    resolve(&plan, &source, &Choices::default(), &machine("0-1", ""), &system)
}

/// The sizes of each row, on such a machine.
fn sizes(text: &str, caches: &[(u32, u32, &str)]) -> (Vec<Option<String>>, Plan) {
    let resolved = resolved(text, caches).unwrap();
    let of = |measure: &Measure| match measure {
        Measure::Memory(table) => table.sizes.map(|sizes| sizes.to_string()),
        other => panic!("{other:?}"),
    };
    (resolved.rows.iter().map(|row| of(&row.result.measurement)).collect(), resolved.plan)
}

#[test]
fn arrays_are_told_by_the_caches_of_this_machine_in_all_environments_on_it() {
    let caches =
        [(0, 0, "32K\n"), (0, 3, "32768K\n"), (1, 0, "32K\n"), (1, 1, "1024K\n"), (1, 2, "16384K\n")];
    let said = |text: &str| Some(text.to_owned());
    let wanted = [said("1KiB..4x16MiB"), said("1KiB..4x16MiB"), None, said("4KiB..1MiB")];
    let (found, plan) = sizes(MEMORY, &caches);
    assert_eq!(found, wanted, "the kernel's numbers have no gap; another machine has caches of its own");
    assert_eq!(sizes(&toml::to_string(&plan).unwrap(), &[]).0, wanted, "what a bundle keeps");
}

#[test]
fn where_the_machine_says_nothing_no_guest_says_it_instead() {
    let said = |text: &str| Some(text.to_owned());
    let wanted = [said("1KiB..4xunknown"), said("1KiB..4xunknown"), None, said("4KiB..1MiB")];
    let (found, plan) = sizes(MEMORY, &[(0, 0, "many")]);
    assert_eq!(found, wanted);
    let elsewhere = [(0, 0, "32K\n"), (0, 1, "16384K\n")];
    assert_eq!(sizes(&toml::to_string(&plan).unwrap(), &elsewhere).0, wanted, "what a bundle keeps");
}

#[test]
fn a_smallest_array_that_is_larger_than_the_largest_on_this_machine_is_wrong_and_says_where() {
    let plan = MEMORY.replace("1KiB..4xLLC", "64MiB..1xLLC");
    let error = resolved(&plan, &[(0, 0, "32768K\n")]).err().unwrap();
    assert_eq!(error.key.as_deref(), Some("scenario[0].measurement.sizes"));
    assert!(error.line.is_some_and(|line| plan.lines().nth(line - 1).unwrap().contains("64MiB..1xLLC")));
    for text in ["64MiB", "1x32MiB", "32MiB"] {
        assert!(error.message.contains(text), "{text}: {}", error.message);
    }
    assert!(resolved(&plan, &[(0, 0, "65536K\n")]).is_ok(), "as large is not larger");
    // 64 MiB, too, where the caches are not known.
    assert!(resolved(&plan, &[]).is_ok());
    assert!(resolved(&plan.replace("64MiB..", "65MiB.."), &[]).is_err());
}

#[test]
fn the_study_of_what_virtualization_costs_goes_to_four_times_the_last_cache() {
    let study = STUDIES.iter().find(|study| study.name == "freescale-qoriq-2014").unwrap();
    assert_eq!(study.text.matches("sizes = \"1KiB..4xLLC\"").count(), 3);
}
