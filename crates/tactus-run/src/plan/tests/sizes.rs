//! Arrays that are told by the machine's caches.

use tactus_model::catalogue::Measure;

use super::*;

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

/// The sizes of each row, on a machine whose CPUs have these caches.
fn sizes(text: &str, caches: &[(u32, u32, &str)]) -> (Vec<Option<String>>, Plan) {
    let file = |system: Memory, (cpu, index, size): &(u32, u32, &str)| {
        system.file(format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/size"), *size)
    };
    let system = caches.iter().fold(Memory::new(), file);
    let source = Source::new("plan.toml", text);
    let plan = parse(&source).unwrap();
    check(&plan, &source, &system).unwrap();
    let resolved = resolve(&plan, &source, &Choices::default(), &machine("0-1", ""), &system).unwrap();
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
fn where_the_machine_says_nothing_whoever_measures_looks() {
    let wanted = ["1KiB..4xLLC", "1KiB..4xLLC", "", "4KiB..1MiB"];
    let (found, _) = sizes(MEMORY, &[(0, 0, "many")]);
    assert!(found.into_iter().map(Option::unwrap_or_default).eq(wanted));
}

#[test]
fn the_study_of_what_virtualization_costs_goes_to_four_times_the_last_cache() {
    let study = STUDIES.iter().find(|study| study.name == "freescale-qoriq-2014").unwrap();
    assert_eq!(study.text.matches("sizes = \"1KiB..4xLLC\"").count(), 3);
}
