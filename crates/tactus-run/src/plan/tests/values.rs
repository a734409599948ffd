//! Rows of values, and what is asked of them.

use super::*;

pub(super) const VALUES: &str = r#"
name = "values"
[defaults]
require = { max = "40us", values = { "system call" = "1us" } }
[environment.host]
kind = "host"
[environment.other]
kind = "host"
[[scenario]]
name = "services"
require = { values = { "signal handler" = "4us", "AF_UNIX bandwidth" = "1GB/s" } }
[[scenario.activity]]
measure = "os"
in = "host"
[[scenario]]
name = "both"
[[scenario.activity]]
measure = "timer"
in = "host"
[[scenario.activity]]
measure = "os"
in = "host"
[[reference]]
scenario = "services"
item = "signal handler"
value = "3.48us"
source = "table 2"
"#;

#[test]
fn a_row_of_values_has_the_bounds_of_values_and_the_scheduling_of_everybody() {
    let resolved = resolved(VALUES, &Choices::default(), &machine("0-1", "")).unwrap();
    let [services, timer, os] = &resolved.rows[..] else { panic!("three rows") };
    assert_eq!(services.result.outcome, Outcome::Values(Vec::new()));
    assert_eq!((services.result.policy, timer.result.policy), (Policy::Other, Policy::Fifo));
    assert_eq!(services.result.require.as_ref().unwrap().values.len(), 2);
    assert_eq!(timer.result.outcome, Outcome::default());
    let (latency, values) = (timer.result.require.as_ref().unwrap(), os.result.require.as_ref().unwrap());
    assert_eq!((latency.max, latency.values.len()), (Some(Nanos::from_us(40)), 0));
    assert_eq!((values.max, values.values.len()), (None, 1));
    let text = toml::to_string(&resolved.plan).unwrap();
    let again = super::resolved(&text, &Choices::default(), &machine("0-1", "")).unwrap();
    assert_eq!(again.plan, resolved.plan);
}

#[test]
fn bounds_and_references_of_the_wrong_kind_of_result_are_refused_with_the_right_one() {
    for (wrong, right, said, hint) in [
        (
            "max = \"4us\"",
            "values = { \"signal handler\" = \"4us\", \"AF_UNIX bandwidth\" = \"1GB/s\" }",
            "bounds on a latency",
            "values = { \"system call\"",
        ),
        ("\"signal\" =", "\"signal handler\" =", "measures no `signal`", "`signal handler`"),
        ("\"4MB/s\"", "\"4us\"", "`signal handler` is measured in us, not in 4MB/s", "a number of us"),
        ("item = \"signals\"", "item = \"signal handler\"", "measures no `signals`", "`signal handler`"),
        (
            "max = \"3us\"",
            "item = \"signal handler\"\nvalue = \"3.48us\"",
            "`services` measures no latency",
            "`item` and `value`",
        ),
        (
            "item = \"signal handler\"\n",
            "item = \"signal handler\"\nvalue = \"3.48us\"\n",
            "belong together",
            "value = ",
        ),
        (
            "scenario = \"both\"\nmax = \"3us\"\nitem",
            "scenario = \"services\"\nitem",
            "both a latency and a value",
            "for each",
        ),
    ] {
        assert!(VALUES.contains(right), "{right}");
        let complaint = complaint(&VALUES.replace(right, wrong));
        assert!(complaint.contains(said) && complaint.contains(hint), "{complaint}");
    }
    let latency =
        PLAN.replace("require = { max = \"40us\" }", "require = { values = { \"system call\" = \"1us\" } }");
    assert!(complaint(&latency).contains("tactus explain os"), "{}", complaint(&latency));
}
