//! The contract of `tactus report --json`, and when a verdict may be given.
#![expect(
    clippy::disallowed_methods,
    reason = "the book is no machine: it is read and written beside the door"
)]

use serde_json::{Value, json};
use tactus_model::buckets::{Counts, bucket_of};
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::{Document, Outcome, Side};
use tactus_model::event::RunStatus;
use tactus_model::outcome::RowEnd;
use tactus_model::plan::Require;
use tactus_model::{Evidence, Nanos};
use tactus_report::document;
use tactus_report::row::verdict;

use crate::common::{
    self, Shape, Span, interrupted, latency, measured, planned, study, this_machine, unmeasured,
};

/// A minute of two threads that wake every 6 ms.
fn required(require: Require, evidence: Evidence) -> Row {
    let planned = planned("host, idle", "host", "host", Vec::new());
    let (planned_ns, interval_ns) = (60_000_000_000, 6_000_000);
    let result = RowResult { require: Some(require), planned_ns, interval_ns, ..planned };
    let span = Span { ticks: 10, samples: 1_000, per_interval: 1, series: 2 };
    measured(result, evidence, Shape::IDLE, span, 3)
}

fn limit(max: Nanos) -> Require {
    Require { max: Some(max), cycles: Some(10_000), ..Require::default() }
}

const GENEROUS: Nanos = Nanos::from_ms(10);

fn outcome(row: &Row) -> (Outcome, String) {
    let verdict = verdict(row).expect("it is required something");
    (verdict.outcome, verdict.reason)
}

#[test]
fn a_kept_limit_passes_and_a_broken_one_fails_with_the_numbers_in_the_reason() {
    let (kept, reason) = outcome(&required(limit(GENEROUS), Evidence::BareMetal));
    assert_eq!(kept, Outcome::Pass);
    assert!(reason.contains("within the required 10 ms, over 20 000 cycles in 1 min"), "{reason}");
    let (broken, reason) = outcome(&required(limit(Nanos::from_us(3)), Evidence::BareMetal));
    assert_eq!(broken, Outcome::Fail);
    assert!(reason.contains("exceeds the required 3 us"), "{reason}");
}

#[test]
fn without_a_requirement_there_is_no_verdict() {
    let mut row = required(limit(GENEROUS), Evidence::BareMetal);
    row.result.require = None;
    assert_eq!(verdict(&row), None);
}

#[test]
fn emulated_evidence_never_passes_or_fails() {
    for max in [Nanos(1), GENEROUS] {
        for evidence in [Evidence::Emulated, Evidence::Imported] {
            assert_eq!(outcome(&required(limit(max), evidence)).0, Outcome::Inconclusive);
        }
    }
}

#[test]
fn a_virtual_host_speaks_of_itself_only() {
    for max in [Nanos(1), GENEROUS] {
        let (outcome, reason) = outcome(&required(limit(max), Evidence::VirtualHost));
        assert_ne!(outcome, Outcome::Inconclusive);
        assert!(reason.contains("as seen inside this virtual machine"), "{reason}");
    }
}

#[test]
fn an_instrument_that_is_not_proven_gives_no_verdict() {
    let mut row = required(limit(GENEROUS), Evidence::BareMetal);
    let seen_ns = std::mem::replace(&mut row.result.control[1].seen_ns, 1_200_000);
    let (unproven, reason) = outcome(&row);
    assert_eq!(unproven, Outcome::Inconclusive);
    assert!(reason.contains("self-test not passed"), "{reason}");
    row.result.control[1].seen_ns = seen_ns;
    row.result.control.truncate(1);
    assert_eq!(outcome(&row).0, Outcome::Inconclusive, "one thread had no control");
    row.result.control.clear();
    let (none, reason) = outcome(&row);
    assert_eq!(none, Outcome::Inconclusive);
    assert!(reason.contains("self-test not passed"), "{reason}");
}

#[test]
fn too_few_cycles_are_inconclusive_unless_more_of_them_could_not_change_it() {
    let require = |max_us: u64| Require { max: Some(Nanos::from_us(max_us)), ..Require::default() };
    let (few, reason) = outcome(&required(require(10_000_000), Evidence::BareMetal));
    assert_eq!(few, Outcome::Inconclusive);
    assert!(
        reason.contains("10 000 cycles of a thread are too few") && reason.contains("needs 100 000"),
        "{reason}"
    );
    // A maximum needs no second value, and no longer measurement is asked for.
    let broken = Require { p99: Some(GENEROUS), ..require(3) };
    let row = required(broken, Evidence::BareMetal);
    let verdict = verdict(&row).unwrap();
    assert_eq!((verdict.outcome, verdict.longer_ns), (Outcome::Fail, None));
    assert!(verdict.reason.contains("exceeds the required 3 us"), "{}", verdict.reason);
    // So few cycles decide nothing else.
    let side = |name: &str| verdict.limits.iter().find(|limit| limit.quantity == name).unwrap().side;
    assert_eq!((side("max"), side("p99")), (Side::Broken, Side::Open));
    assert_eq!(outcome(&required(require(3), Evidence::Emulated)).0, Outcome::Inconclusive);
}

#[test]
fn lost_samples_hide_neither_the_maximum_nor_the_doubt_about_a_quantile() {
    let mut row = required(limit(Nanos::from_us(3)), Evidence::BareMetal);
    for series in &mut latency(&mut row).series {
        series.summary.lost = 100;
    }
    // The samples of two ticks of one series.
    let mut lost = 2_000;
    let mut kept = Counts::default();
    for (value, count) in row.histograms.series["1"].buckets() {
        let less = count.min(lost);
        lost -= less;
        kept.add(bucket_of(value), count - less);
    }
    row.histograms.series.insert("1".into(), kept.pack());
    if let Some(all) = &mut latency(&mut row).all {
        all.lost = 2_000;
    }
    assert_eq!(outcome(&row).0, Outcome::Fail, "the maximum is exact");
    row.result.require =
        Some(Require { p99: Some(Nanos::from_us(5)), cycles: Some(1), ..Require::default() });
    let (doubtful, reason) = outcome(&row);
    assert_eq!(doubtful, Outcome::Inconclusive);
    assert!(reason.contains("samples were lost"), "{reason}");
    row.result.require = Some(Require { p99: Some(GENEROUS), cycles: Some(1), ..Require::default() });
    assert_eq!(outcome(&row).0, Outcome::Pass, "not even the maximum exceeds it");
}

#[test]
fn a_row_that_ended_early_can_fail_but_not_pass() {
    let mut row = required(limit(GENEROUS), Evidence::BareMetal);
    row.result.planned_ns = 86_400_000_000_000;
    let (early, reason) = outcome(&row);
    assert_eq!(early, Outcome::Inconclusive);
    assert!(reason.contains("ended before its 24 h"), "{reason}");
    row.result.require = Some(limit(Nanos(1)));
    assert_eq!(outcome(&row).0, Outcome::Fail);
}

#[test]
fn a_row_without_cycles_has_nulls_and_no_verdict_but_inconclusive() {
    let mut row = required(limit(GENEROUS), Evidence::BareMetal);
    latency(&mut row).all = Some(tactus_model::Latency::new().summary());
    assert_eq!(outcome(&row).0, Outcome::Inconclusive);
    let mut contents = common::empty();
    contents.rows.push(row);
    contents.rows.push(unmeasured(planned("a", "b", "oci", Vec::new()), RowEnd::Failed, "it broke"));
    let document = json(&contents);
    assert_eq!(document["scenarios"][0]["all"], Value::Null);
    assert_eq!(document["scenarios"][0]["reason"], "nothing was measured");
    assert_eq!(document["scenarios"][1]["evidence"], Value::Null);
    assert_eq!(document["scenarios"][1]["reason"], "it broke");
}

fn json(contents: &Contents) -> Value {
    serde_json::to_value(document(contents)).expect("a document is JSON")
}

#[test]
fn an_interrupted_row_says_so() {
    let contents = interrupted();
    let document = document(&contents);
    assert_eq!(document.status, RunStatus::Interrupted);
    assert_eq!(document.scenarios[0].reason.as_deref(), Some("interrupted after 4 s of 24 h"));
}

#[test]
fn the_document_has_the_keys_of_the_contract() {
    let document = json(&study());
    let entry = &document["scenarios"][3];
    assert_eq!(document["format"], json!({ "major": 2, "minor": 0 }));
    assert_eq!(entry["published"]["max_ns"], 8_000);
    assert_eq!(entry["load"][0]["kind"], "scheduler");
    assert_eq!(entry["series"][0]["id"], "vm/cpu1/t0/thread");
    for key in [
        "cycles",
        "overruns",
        "lost",
        "min_ns",
        "mean_ns",
        "p50_ns",
        "p99_ns",
        "p999_ns",
        "max_ns",
        "corrected",
    ] {
        assert!(!entry["all"][key].is_null() && !entry["series"][0][key].is_null(), "{key}: {entry:#}");
    }
    assert_eq!(entry["self_test"]["passed"], true);
}

#[test]
fn references_to_one_scenario_add_up() {
    let mut contents = study();
    let mut other = contents.plan.reference[0].clone();
    (other.max, other.min, other.source) = (Some(Nanos(1)), Some(Nanos::from_us(2)), "figure 4".into());
    contents.plan.reference.push(other);
    let published = document(&contents).scenarios[2].published.clone().expect("it has references");
    assert_eq!((published.min_ns, published.max_ns), (Some(2_000), Some(8_000)));
    assert_eq!(published.source, "section 12.2 and figure 3; figure 4");
}

/// The schema in the book is made from the types; `UPDATE_DOCS=1` writes it anew.
#[test]
fn the_published_schema_is_that_of_the_document() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/show.schema.json");
    let made =
        serde_json::to_string_pretty(&schemars::schema_for!(Document)).expect("a schema is JSON") + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(path, &made).expect("docs/schema can be written");
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(published, made, "docs/schema/show.schema.json is out of date: run with UPDATE_DOCS=1");
}

/// Every document must fit the published schema, as far as its types and required keys go.
#[test]
fn documents_fit_the_schema() {
    let schema = serde_json::to_value(schemars::schema_for!(Document)).expect("a schema is JSON");
    let with_a_tail = crate::tail::with_a_tail();
    for contents in [study(), this_machine(), interrupted(), common::empty(), common::hostile(), with_a_tail]
    {
        let document = json(&contents);
        fits(&schema, &schema, &document, "document");
    }
    let mut wrong = json(&study());
    wrong["scenarios"][0]["all"]["cycles"] = json!("many");
    let caught = std::panic::catch_unwind(|| fits(&schema, &schema, &wrong, "document"));
    assert!(caught.is_err(), "a wrong type must be noticed");
}

/// The part of JSON Schema that schemars writes for these types.
pub fn fits(root: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(path) = schema["$ref"].as_str() {
        let target =
            root.pointer(path.trim_start_matches('#')).unwrap_or_else(|| panic!("{path} is missing"));
        return fits(root, target, value, at);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(options) = schema[key].as_array() {
            let fit = |option: &&Value| fits_quietly(root, option, value);
            assert!(options.iter().any(|option| fit(&option)), "{at}: {value} fits none of {key}");
        }
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(constant, value, "{at}");
    }
    if let Some(values) = schema["enum"].as_array() {
        assert!(values.contains(value), "{at}: {value} is not one of {values:?}");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let own = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() || number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let integer_as_number = own == "integer" && types.contains(&"number");
    assert!(types.is_empty() || types.contains(&own) || integer_as_number, "{at}: {value} is not {types:?}");
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(value.is_null() || value.get(key).is_some(), "{at}: {key} is missing");
    }
    if let (Some(properties), Some(object)) = (schema["properties"].as_object(), value.as_object()) {
        for (key, value) in object {
            if let Some(schema) = properties.get(key) {
                fits(root, schema, value, &format!("{at}.{key}"));
            }
        }
    }
    if let (Some(items), Some(array)) = (schema.get("items"), value.as_array()) {
        for (n, value) in array.iter().enumerate() {
            fits(root, items, value, &format!("{at}[{n}]"));
        }
    }
}

fn fits_quietly(root: &Value, schema: &Value, value: &Value) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fits(root, schema, value, "option"))).is_ok()
}
