use std::collections::BTreeMap;

use tactus_model::Nanos;
use tactus_model::plan::Require;

use super::values::VALUES;
use super::{Choices, PLAN, machine, resolved};

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
    assert!(error.message.contains("nothing that is measured has a latency"), "{error}");
}
