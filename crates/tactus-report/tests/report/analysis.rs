//! Comparison, effects and courses over time, on whole bundles.

use serde_json::json;
use tactus_model::Evidence;
use tactus_model::bundle::Contents;
use tactus_model::bundle::Row;
use tactus_model::number::float;
use tactus_report::row::load_words;
use tactus_report::stats::{Effect, claims, comparison, delta, distribution, slots_alike, timeline};

use crate::common::{self, Shape, Span, day, measured, planned, scheduler, study, this_machine};

/// The effect of one row, `b`, against another, `a`.
fn effect_of(base: Row, with: Row) -> Result<Effect, String> {
    let contents: Contents = common::compared(vec![base, with]);
    claims(&contents).remove(0).effect().cloned().map_err(str::to_owned)
}

/// Takes the ticks away that do not hold.
fn retain_ticks(row: &mut Row, keep: impl Fn(u64) -> bool) {
    for series in row.ticks.series.values_mut() {
        series.stretches.retain(|one| keep(one.first));
    }
}

#[test]
fn a_row_is_compared_with_the_host_under_the_same_load() {
    let lines = comparison(&this_machine());
    let against = |name: &str| {
        let line = lines.iter().find(|line| line.name == name).expect("it is in the fixture");
        line.against.as_ref().map(|against| (against.name.clone(), against.caution.is_some()))
    };
    assert_eq!(against("podman, idle"), Some(("host, idle".into(), false)));
    assert_eq!(against("podman, loaded"), Some(("host, loaded".into(), false)));
    assert_eq!(
        against("qemu, loaded"),
        None,
        "a factor between an emulated processor and a real one is the emulator's"
    );
    assert_eq!((against("host, loaded"), against("oci, idle")), (None, None));
}

#[test]
fn differences_are_this_row_minus_the_host() {
    let lines = comparison(&this_machine());
    let (host, podman) = (&lines[0], &lines[2]);
    let (host, own) = (host.figures.as_ref().unwrap(), podman.figures.as_ref().unwrap());
    let (theirs, ours) = (float(host.max_ns.unwrap()), float(own.max_ns.unwrap()));
    assert_eq!(podman.against.as_ref().unwrap().row, 0);
    let max = delta(Some(ours), Some(theirs)).unwrap();
    assert!((max.absolute_ns - (ours - theirs)).abs() < 1e-6);
    assert!((max.relative.unwrap() - (ours - theirs) / theirs).abs() < 1e-9);
}

#[test]
fn rows_that_were_measured_differently_are_not_compared() {
    let mut contents = this_machine();
    contents.rows[2].result.interval_ns = 1_000_000;
    contents.rows[3].result.priority = 50;
    let lines = comparison(&contents);
    assert!(lines[2].against.is_none() && lines[3].against.is_none());
}

#[test]
fn a_load_elsewhere_is_another_load() {
    let mut contents = this_machine();
    contents.rows[3].result.load =
        vec![json!({ "kind": "scheduler", "pipes": false, "in": "host", "cpus": "0" })];
    let lines = comparison(&contents);
    assert_eq!(lines[3].load, "scheduler load in host on CPU 0");
    // The host's own row has the very same load in the same place.
    assert_eq!(lines[3].against.as_ref().map(|against| against.name.as_str()), Some("host, loaded"));
    contents.rows[3].result.load = vec![json!({ "kind": "scheduler", "pipes": false, "in": "qemu" })];
    assert!(comparison(&contents)[3].against.is_none());
    assert_eq!(load_words(&contents.rows[0].result), "idle");
}

#[test]
fn a_load_that_raises_latency_is_found_and_said() {
    let contents = this_machine();
    let claims = claims(&contents);
    let effect = claims[0].effect().unwrap();
    let [p50, p999, max] = effect.sentences().try_into().unwrap();
    assert!(
        p50.starts_with("p50 is 0.9") && p50.contains("higher under load, between these two runs"),
        "{p50}"
    );
    assert!(p50.contains("95 % interval"), "{p50}");
    assert!(p999.starts_with("p99.9 is "), "{p999}");
    assert!(max.contains("median of the per-interval maxima"), "{max}");
    assert_eq!(effect.answer(), "these two runs differ in p50, p99.9 and maximum");
    assert!(effect.method().contains("`repeat = 8`"), "{}", effect.method());
    assert_eq!(effect.caution.as_deref(), Some("As seen inside this virtual machine."));
    let emulated = claims[2].effect().unwrap();
    assert!(emulated.caution.as_ref().unwrap().contains("nothing about hardware"));
}

#[test]
fn no_effect_comes_with_the_largest_one_that_cannot_be_ruled_out() {
    let contents = study();
    let claims = claims(&contents);
    let effect = claims[1].effect().unwrap();
    assert_eq!(effect.answer(), "no difference between these two runs shown");
    let p50 = &effect.sentences()[0];
    assert!(p50.starts_with("p50 differs by at most 0.0"), "{p50}");
}

#[test]
fn short_rows_are_inconclusive_and_missing_ones_say_why() {
    let span = Span { ticks: 5, samples: 500, per_interval: 1, series: 1 };
    let row = |name: &str, load| {
        measured(planned(name, "host", "host", load), Evidence::BareMetal, Shape::IDLE, span, 1)
    };
    let (base, with) = (row("a", Vec::new()), row("b", scheduler("host")));
    let short = effect_of(base, with).unwrap();
    assert_eq!(short.answer(), "inconclusive: not enough data");
    assert!(short.sentences().iter().all(|sentence| sentence.contains("not enough data")));
    let mut contents = this_machine();
    contents.plan.compare[0].with = "oci, idle".into();
    contents.plan.compare[1].base = "elsewhere".into();
    let claims = claims(&contents);
    assert!(claims[0].effect().unwrap_err().contains("neither crun nor runc"));
    assert_eq!(claims[1].effect().unwrap_err(), "`elsewhere` is not in this bundle");
}

#[test]
fn series_are_joined_interval_by_interval() {
    let contents = this_machine();
    assert_eq!(contents.rows[0].histograms.series.len(), 2);
    let [first, second] = slots_alike(&contents.rows[0], &contents.rows[1]).unwrap();
    assert_eq!((first.len(), second.len()), (20, 20));
}

#[test]
fn a_day_is_drawn_in_few_bins_and_its_one_late_wake_up_is_in_one_of_them() {
    let contents = day();
    let row = &contents.rows[0];
    let course = timeline(row, 320);
    assert!(course.bins.len() <= 320, "{}", course.bins.len());
    assert_eq!(course.width_ns, 300_000_000_000, "whole intervals of the log");
    let late: Vec<_> = course.bins.iter().filter(|bin| bin.max_ns == Some(777_000)).collect();
    assert_eq!(late.len(), 1);
    assert_eq!(late[0].n, 50_000_000_000_000 / course.width_ns);
    let smallest = row.ticks.iter().filter_map(|(_, stretch)| stretch.min_ns).min();
    assert_eq!(course.bins.iter().filter_map(|bin| bin.min_ns).min(), smallest);
    assert!(slots_alike(row, row).unwrap()[0].len() <= 1_440);
}

#[test]
fn ticks_that_were_lost_leave_a_gap() {
    let mut contents = this_machine();
    let row = &mut contents.rows[0];
    retain_ticks(row, |n| !(5..8).contains(&n));
    row.histograms.intervals.retain(|n, _| !(5..8).contains(n));
    let course = timeline(row, 320);
    let numbers: Vec<u64> = course.bins.iter().map(|bin| bin.n).collect();
    assert_eq!(numbers, (0..5).chain(8..20).collect::<Vec<_>>());
}

#[test]
fn no_sample_is_lost_between_the_bins_of_a_distribution() {
    for contents in [this_machine(), study()] {
        for pair in contents.rows.chunks(2) {
            let rows: Vec<_> = pair.iter().collect();
            let bins = distribution(&rows);
            for (row, counts) in rows.iter().zip(&bins.counts) {
                assert_eq!(counts.iter().sum::<u64>(), row.histogram().len());
            }
            if let (Some(first), Some(last)) = (bins.edges.first(), bins.edges.last()) {
                let all = rows[0].result.all().unwrap();
                assert!(*first <= all.min_ns.unwrap() && *last > all.max_ns.unwrap());
                assert!(bins.edges.is_sorted_by(|a, b| a < b) && bins.edges.len() < 260);
            }
        }
    }
}
