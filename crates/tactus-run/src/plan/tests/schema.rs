//! The schema by which editors and CI check plans: it is made from the types, accepts plans, and refuses other
//! documents.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tactus_model::plan::Plan;

use super::*;

const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/plan.schema.json");

/// A script that validates a list of documents by a schema: for each the first error, or nothing.
const VALIDATOR: &str = "
import json, sys
import jsonschema
schema, documents = json.load(sys.stdin)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
json.dump([next((error.message for error in validator.iter_errors(one)), None) for one in documents], sys.stdout)
";

/// `UPDATE_DOCS=1` writes it anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "the book is compared with the code")]
fn the_published_schema_of_plans_is_that_of_the_types() {
    let made = serde_json::to_string_pretty(&schemars::schema_for!(Plan)).unwrap() + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(PUBLISHED, &made).unwrap();
    }
    let published = std::fs::read_to_string(PUBLISHED).unwrap_or_default();
    assert!(published == made, "docs/schema/plan.schema.json is out of date: run with UPDATE_DOCS=1");
}

/// The answers of a validator for these plans; `None` without a validator, which is printed.
#[expect(clippy::disallowed_methods, reason = "another program validates")]
fn validated(plans: &[String]) -> Option<Vec<Option<String>>> {
    use std::io::Write as _;
    use std::process::Stdio;
    let known = Command::new("python3").args(["-c", "import jsonschema"]).output();
    if !known.is_ok_and(|known| known.status.success()) {
        assert!(
            std::env::var_os("TACTUS_TEST_ALL").is_none(),
            "nothing may be skipped, and there is no jsonschema"
        );
        eprintln!("SKIPPED: there is no python3-jsonschema");
        return None;
    }
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(PUBLISHED).unwrap()).unwrap();
    let documents: Vec<Value> = plans.iter().map(|text| toml::from_str(text).unwrap()).collect();
    let mut python = Command::new("python3")
        .args(["-c", VALIDATOR])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut given = python.stdin.take().unwrap();
    given.write_all(&serde_json::to_vec(&(schema, documents)).unwrap()).unwrap();
    drop(given);
    let said = python.wait_with_output().unwrap();
    assert!(said.status.success());
    Some(serde_json::from_slice(&said.stdout).unwrap())
}

/// The plans in the guide: blocks between ```toml and ``` that have an environment and a scenario.
#[expect(clippy::disallowed_methods, reason = "the guide is read")]
fn of_the_guide() -> Vec<String> {
    let guide = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide"));
    let pages =
        std::fs::read_dir(guide).unwrap().map(|page| std::fs::read_to_string(page.unwrap().path()).unwrap());
    let blocks = |page: String| -> Vec<String> {
        let after =
            page.split("```toml").skip(1).filter_map(|rest| rest.split_once('\n')?.1.split_once("```"));
        after.map(|(block, _)| block.to_owned()).collect()
    };
    let plan = |text: &String| parse(&Source::new("guide", text.as_str())).is_ok();
    pages.flat_map(blocks).filter(plan).collect()
}

#[test]
fn every_study_and_every_plan_of_the_guide_fits_the_schema() {
    let guide = of_the_guide();
    assert!(guide.len() >= 3, "the guide has {} plans", guide.len());
    let plans: Vec<String> =
        STUDIES.iter().map(|study| study.text.to_owned()).chain([PLAN.to_owned()]).chain(guide).collect();
    let Some(said) = validated(&plans) else { return };
    for (plan, wrong) in plans.iter().zip(said) {
        assert_eq!(wrong, None, "{plan}");
    }
}

#[test]
fn what_the_schema_refuses_is_no_plan() {
    let wrong: Vec<String> = [
        ("interval = \"200us\"", "intervall = \"200us\""),
        ("interval = \"200us\"", "interval = 200"),
        ("interval = \"200us\"", "interval = \"200\""),
        ("kind = \"qemu\"", "cpu = 3"),
        ("measure = \"timer\"", "measure = \"tmier\""),
        ("measure = \"timer\"", "measure = { kind = \"timer\", threads = 65 }"),
        ("measure = \"timer\"", "measure = { kind = \"timer\", thread = 1 }"),
        ("load = { kind = \"scheduler\" }", "load = { kind = \"cache\", bytes = 8 }"),
        ("load = { kind = \"scheduler\" }", "load = [\"scheduler\"]"),
    ]
    .iter()
    .map(|(from, to)| {
        assert!(PLAN.contains(from), "{from}");
        PLAN.replacen(from, to, 1)
    })
    .collect();
    let Some(said) = validated(&wrong) else { return };
    for (plan, said) in wrong.iter().zip(said) {
        assert!(said.is_some(), "the schema takes {plan}");
        let source = Source::new("wrong", plan.as_str());
        let refused = parse(&source).and_then(|own| check(&own, &source, &Real)).is_err();
        assert!(refused, "the parser takes {plan}");
    }
}
