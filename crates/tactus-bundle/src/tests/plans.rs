//! Plans of strangers: their requests to a report and their names are limited.

use std::fs;

use tactus_model::Nanos;
use tactus_model::plan::{
    Compare, Disturbed, Environment, Figure, FigureKind, MOST_COMPARED, MOST_DISTURBED,
    MOST_PUBLISHED_THREADS, MOST_REFERENCES, MOST_SEPARATED, MOST_SHOWN, Page, Plan, Reference, Separation,
    Shown, Technology,
};

use super::strangers::begun;
use crate::{Trust, read};

/// The environment around another stands in the title of each of its rows, and a figure's title above each of
/// its drawings.
#[test]
fn what_a_plan_names_once_and_a_report_says_of_each_row_is_cut() {
    let (_home, dir) = begun();
    let long = "x".repeat(300_000);
    let disturbed = Disturbed {
        scenario: long.clone(),
        environment: long.clone(),
        what: long.clone(),
        ..Disturbed::default()
    };
    let place = Environment { kind: long.clone(), inside: Some(long.clone()), ..Environment::default() };
    let scenarios = vec![long.clone()];
    let plan = Plan {
        environment: [("host".to_owned(), place)].into(),
        figure: vec![Figure { kind: FigureKind::Matrix, title: long.clone(), scenarios: scenarios.clone() }],
        page: vec![Page { title: long.clone(), scenarios: scenarios.clone(), ..Page::default() }],
        separation: Some(Separation {
            environments: scenarios.clone(),
            rest: scenarios,
            disturbed: vec![disturbed],
            ..Separation::default()
        }),
        ..Plan::default()
    };
    let text = toml::to_string(&plan).unwrap();
    assert_eq!(text.matches(&long).count(), 11);
    fs::write(dir.join("plan.toml"), text).unwrap();
    let contents = read(&dir, Trust::Damaged).unwrap();
    assert!(toml::to_string(&contents.plan).unwrap().len() < 20_000);
    let said = contents.damage.join("\n");
    assert!(said.contains("plan.toml: 11 of its names are too long"), "{said}");
}

#[test]
fn comparisons_and_drawings_beyond_those_that_a_plan_may_have_are_left_out_and_said() {
    let (_home, dir) = begun();
    let compare = |base: usize, with: usize| Compare {
        name: "c".into(),
        base: base.to_string(),
        with: with.to_string(),
        claim: None,
    };
    let pairs = (0..20_000).map(|n| compare(1, n % 2)).chain((0..1_000).map(|n| compare(n, 7)));
    let figure = Figure { kind: FigureKind::Histogram, title: "f".into(), scenarios: vec!["a".into()] };
    let plan = Plan {
        compare: pairs.collect(),
        figure: vec![figure; 1_000],
        page: vec![Page { show: vec![Shown::Threads; 100], ..Page::default() }; 1_000],
        technology: vec![Technology::default(); 1_000],
        separation: Some(Separation {
            environments: vec!["host".into(); 1_000],
            disturbed: vec![Disturbed::default(); 1_000],
            rest: vec!["rest".into(); 1_000],
            ..Separation::default()
        }),
        ..Plan::default()
    };
    fs::write(dir.join("plan.toml"), toml::to_string(&plan).unwrap()).unwrap();
    let contents = read(&dir, Trust::Damaged).unwrap();
    assert_eq!(contents.plan.compare.len(), MOST_COMPARED);
    assert_eq!(contents.plan.compare[..2], [compare(1, 0), compare(1, 1)]);
    let shown = &contents.plan;
    assert!(shown.page.iter().all(|page| page.show == [Shown::Threads]), "each once");
    assert_eq!([shown.figure.len(), shown.page.len(), shown.technology.len()], [MOST_SHOWN; 3]);
    let separation = shown.separation.as_ref().unwrap();
    let kept = [separation.environments.len(), separation.rest.len(), separation.disturbed.len()];
    assert_eq!(kept, [MOST_SEPARATED, MOST_SEPARATED, MOST_DISTURBED]);
    let said = contents.damage.join("\n");
    assert!(said.contains("20744 of its comparisons are duplicates, or exceed 256"), "{said}");
    for what in ["figures", "pages", "technologies"] {
        assert!(said.contains(&format!("936 of its {what} are")), "{said}");
    }
}

/// Of a reference with too many threads none is kept: the largest of some is not the largest that was published.
#[test]
fn references_and_threads_beyond_those_that_a_plan_may_have_are_left_out_and_said() {
    let (_home, dir) = begun();
    let reference = |threads: usize| Reference {
        scenario: "a".into(),
        threads: vec![[Nanos(1_000), Nanos(2_000), Nanos(3_000)]; threads],
        source: "s".into(),
        ..Reference::default()
    };
    let mut all = vec![reference(1); MOST_REFERENCES + 7];
    all[1] = reference(MOST_PUBLISHED_THREADS);
    all[2] = reference(MOST_PUBLISHED_THREADS + 1);
    let plan = Plan { reference: all, ..Plan::default() };
    fs::write(dir.join("plan.toml"), toml::to_string(&plan).unwrap()).unwrap();
    let contents = read(&dir, Trust::Damaged).unwrap();
    let kept: Vec<usize> = contents.plan.reference.iter().map(|one| one.threads.len()).collect();
    assert_eq!((kept.len(), &kept[..4]), (MOST_REFERENCES, &[1, MOST_PUBLISHED_THREADS, 0, 1][..]));
    let said = contents.damage.join("\n");
    for what in ["7 of its references are", "257 of its published threads are"] {
        assert!(said.contains(what), "{said}");
    }
}
