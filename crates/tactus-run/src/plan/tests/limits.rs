use std::collections::BTreeMap;

use tactus_model::Nanos;
use tactus_model::plan::{Require, TailLimit};

use super::values::VALUES;
use super::{Choices, PLAN, complaint, machine, resolved};

fn limits<const N: usize>(limits: [(&str, Require); N]) -> Choices {
    let require: BTreeMap<String, Require> =
        limits.into_iter().map(|(environment, require)| (environment.to_owned(), require)).collect();
    Choices { require, ..Choices::default() }
}

#[test]
fn what_is_asked_of_all_holds_beside_what_is_asked_of_one_limit_by_limit() {
    let all = Require { max: Some(Nanos(1)), overruns: Some(0), p99: Some(Nanos(7)), ..Require::default() };
    let own = Require { max: Some(Nanos(90)), ..Require::default() };
    let found = resolved(PLAN, &limits([("", all), ("guest", own)]), &machine("0-1", "")).unwrap();
    let require = found.rows[0].result.require.clone().unwrap();
    assert_eq!((require.max, require.overruns, require.p99), (Some(Nanos(90)), Some(0), Some(Nanos(7))));
    let host = found.rows[1].result.require.clone().unwrap();
    assert_eq!((host.max, host.p99), (Some(Nanos(1)), Some(Nanos(7))), "before the 40 us of the plan");
}

#[test]
fn a_limit_on_the_tail_is_a_latency_and_a_time_and_neither_is_nothing() {
    let of = |tail: &str| {
        PLAN.replace("require = { max = \"40us\" }", &format!("require = {{ tail = {{ {tail} }} }}"))
    };
    let asked = of("max = \"200us\", horizon = \"24h\"");
    let found = resolved(&asked, &Choices::default(), &machine("0-1", "")).unwrap();
    let tail = TailLimit { max: Nanos::from_us(200), horizon: Nanos::from_secs(86_400) };
    assert_eq!(found.rows[1].result.require.as_ref().unwrap().tail, Some(tail));
    for (nothing, word) in [
        ("max = \"200us\", horizon = \"0s\"", "`horizon` of the tail is 0"),
        ("max = \"0us\", horizon = \"24h\"", "`max` of the tail is 0"),
    ] {
        let said = complaint(&of(nothing));
        let hint = "hint: write it as in tail = { max = \"200us\", horizon = \"24h\" }";
        assert!(said.contains(word) && said.contains(hint), "{said}");
    }
}

#[test]
fn limits_on_latencies_of_what_has_none_are_refused() {
    let max = || Require { max: Some(Nanos(90)), ..Require::default() };
    let bare = VALUES.replace("require = { max = \"40us\", values = { \"system call\" = \"1us\" } }\n", "");
    let bare = bare.replace(
        "require = { values = { \"signal handler\" = \"4us\", \"AF_UNIX bandwidth\" = \"1GB/s\" } }\n",
        "",
    );
    let both = resolved(&bare, &limits([("", max())]), &machine("0-1", "")).unwrap();
    assert_eq!(both.rows.iter().filter(|row| row.result.require.is_some()).count(), 1, "the timer's");
    let only = Choices { only: vec!["services".into()], ..limits([("", max())]) };
    let Err(error) = resolved(&bare, &only, &machine("0-1", "")) else { panic!("accepted") };
    assert!(error.message.contains("no measurement has a latency"), "{error}");
}

#[test]
fn a_limit_longer_than_the_period_is_said_to_be_kept_by_missed_periods_unless_those_are_limited() {
    let of = |require: Require| {
        let choices = Choices { interval: Some(Nanos::from_us(500)), ..limits([("", require)]) };
        resolved(PLAN, &choices, &machine("0-1", "")).unwrap()
    };
    let max = Some(Nanos::from_ms(300));
    let long = of(Require { max, ..Require::default() });
    let said: Vec<String> = long.cautions().into_iter().collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("the limit of 300ms is longer than the period of 500us"), "{said:?}");
    assert!(said[0].contains("`--overruns 0`"), "{said:?}");
    assert!(long.rows[0].result.notes.iter().any(|note| note.text == said[0]), "the report has it, too");
    assert!(of(Require { max, overruns: Some(0), ..Require::default() }).cautions().is_empty());
    assert!(of(Require { max: Some(Nanos::from_us(500)), ..Require::default() }).cautions().is_empty());
}
