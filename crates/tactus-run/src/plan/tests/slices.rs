//! Plans whose scenarios take turns.

use super::*;
use crate::plan::RowPlan;

#[test]
fn slices_are_rounds_of_all_scenarios_that_together_measure_as_long_as_the_plan_says() {
    let text = PLAN.replace("duration = \"1min\"", "duration = \"1min\"\ninterleave = \"10s\"");
    let choices = Choices { seed: 5, ..Choices::default() };
    let first = resolved(&text, &choices, &machine("0-1", "")).unwrap();
    let order = |resolved: &Resolved| -> Vec<(String, Option<u32>)> {
        let number = |row: &RowPlan| row.result.slice.map(|slice| slice.number);
        resolved.rows.iter().map(|row| (row.result.name.clone(), number(row))).collect()
    };
    let slices = order(&first);
    assert_eq!((slices.len(), first.plan.scenario.len(), first.plan.seed), (12, 2, Some(5)));
    for (round, number) in slices.chunks(2).zip(1..) {
        assert!(round.iter().all(|own| own.1 == Some(number)) && round[0].0 != round[1].0, "{slices:?}");
    }
    for row in &first.rows {
        let slice = row.result.slice.unwrap();
        assert_eq!((slice.of, slice.whole_ns, row.result.planned_ns), (6, 60_000_000_000, 10_000_000_000));
    }
    let again = toml::to_string(&first.plan).unwrap();
    let again = resolved(&again, &Choices::default(), &machine("0-1", "")).unwrap();
    assert_eq!((order(&again), &again.plan), (slices, &first.plan));
    let said = |interleave| Choices { interleave: Some(Nanos::from_secs(interleave)), ..Choices::default() };
    let count = |text: &str, choices| resolved(text, &choices, &machine("0-1", "")).unwrap().rows.len();
    assert_eq!(count(PLAN, said(20)), 6);
    assert_eq!(count(PLAN, said(600)), 2, "a slice that is longer than all of it is all of it");
    let values = PLAN
        .replace("measurement = \"timer\"", "measurement = \"os\"")
        .replace("require = { max = \"40us\" }", "")
        .replace("[[scenario.activity]]\nmeasure = \"timer\"", "[[scenario.activity]]\nmeasure = \"cpu\"");
    assert_eq!(count(&values, said(10)), 2, "medians do not add up");
    let short = PLAN.replace("duration = \"1min\"", "interleave = \"20ms\"");
    let error = resolved(&short, &choices, &machine("0-1", "")).err().unwrap();
    assert!(error.to_string().contains("interleave"), "{error}");
}

#[test]
fn the_study_of_a_core_beside_a_loaded_one_takes_turns_and_says_what_two_cpus_take_from_it() {
    let study = STUDIES.iter().find(|study| study.name == "intel-xeon-2015").unwrap();
    let on = |machine: Topology, choices: &Choices| resolved(study.text, choices, &machine).unwrap();
    let day = on(machine("0-17", "1-17"), &Choices::default());
    assert_eq!((day.scenarios.len(), day.plan.scenario.len()), (4 * 144, 4));
    assert!(day.plan.scenario.iter().all(|own| own.duration == Some(Nanos::from_secs(86_400))));
    let reduced = |of: &Resolved| -> Vec<String> {
        let said = |row: &RowPlan| row.result.notes.iter().any(|note| note.text.starts_with("reduced: "));
        let rows = of.rows.iter().filter(|row| said(row));
        let mut names: Vec<String> = rows.map(|row| row.result.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    };
    assert!(!reduced(&day).contains(&"host with load on the neighbour".to_owned()));
    let small = on(machine("0-1", ""), &Choices { quick: true, ..Choices::default() });
    assert_eq!(small.scenarios.len(), 8, "two turns of each");
    assert_eq!(reduced(&small), ["VM with load on the neighbour", "host with load on the neighbour"]);
    let size = day.size();
    assert!(size.disk > 10_000_000 && size.most() == 2 * size.disk && size.memory > 10_000_000, "{size:?}");
}

#[test]
fn by_default_the_scenarios_of_an_environment_take_turns_if_there_is_time_for_nine() {
    let text = |seconds: u64| {
        let scenario = |name: &str, rest: &str| {
            format!(
                "[[scenario]]\nname = \"{name}\"\nenvironment = \"host\"\nduration = \"{seconds}s\"\ncpus = \"1\"\n{rest}\n"
            )
        };
        "name = \"turns\"\n[environment.host]\nkind = \"host\"\n".to_owned()
            + &scenario("idle", "measurement = \"timer\"")
            + &scenario("values", "measurement = \"os\"")
            + &scenario("loaded", "measurement = \"timer\"\nload = [\"cpu\"]")
    };
    let choices = Choices { in_turn: true, seed: 5, ..Choices::default() };
    let order = |seconds: u64| -> Vec<(String, Option<(u32, u32)>)> {
        let resolved = resolved(&text(seconds), &choices, &machine("0-1", "")).unwrap();
        let slice = |row: &RowPlan| row.result.slice.map(|slice| (slice.number, slice.of));
        resolved.rows.iter().map(|row| (row.result.name.clone(), slice(row))).collect()
    };
    let ten = order(10);
    assert_eq!(ten.len(), 21);
    for (round, number) in ten[..20].chunks(2).zip(1..) {
        let mut names: Vec<&str> = round.iter().map(|own| own.0.as_str()).collect();
        names.sort_unstable();
        assert!(
            names == ["idle", "loaded"] && round.iter().all(|own| own.1 == Some((number, 10))),
            "{ten:?}"
        );
    }
    assert_eq!(ten[20], ("values".into(), None), "medians do not add up");
    assert!(order(8).iter().all(|own| own.1.is_none()), "eight turns would decide nothing");
    assert_eq!(order(600).len(), 61, "thirty turns of 20 s");
    let alone = Choices { only: vec!["idle".into()], ..choices.clone() };
    let alone = resolved(&text(10), &alone, &machine("0-1", "")).unwrap();
    assert_eq!(alone.rows.len(), 1, "nothing to take turns with");
}
