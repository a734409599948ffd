//! Blame of latencies, requested in a plan or on the command line.

use tactus_model::Nanos;
use tactus_model::catalogue::Measure;
use tactus_model::message::What;

use super::{Choices, ResolvedScenario, machine, resolved};

#[test]
fn who_had_the_cpu_is_kept_where_a_plan_asks_for_it_and_where_it_is_run_again() {
    const PLAN: &str = r#"
name = "blame"
[environment.host]
kind = "host"
[[scenario]]
name = "asked for"
environment = "host"
blame_above = "100us"
[[scenario]]
name = "not"
environment = "host"
"#;
    let resolved = resolved(PLAN, &Choices::default(), &machine("0-3", "")).unwrap();
    let above: Vec<_> = resolved.scenarios.iter().map(|scenario| scenario.blame_above).collect();
    assert_eq!(above, [Some(100_000), None]);
    let kept: Vec<_> = resolved.plan.scenario.iter().map(|scenario| scenario.blame_above).collect();
    assert_eq!(kept, [Some(Nanos(100_000)), None]);
}

#[test]
fn blame_and_stop_options_apply_to_each_scenario_with_an_operating_system() {
    const PLAN: &str = r#"
name = "blame"
[environment.host]
kind = "host"
[environment.floor]
kind = "bare"
[[scenario]]
name = "host"
environment = "host"
stop_above = "3ms"
[[scenario]]
name = "floor"
environment = "floor"
"#;
    let (blame, stop) = (Nanos(100_000), Nanos(200_000));
    let asked = |choices: &Choices| -> Vec<(Option<u64>, Option<Nanos>)> {
        let resolved = resolved(PLAN, choices, &machine("0-3", "")).unwrap();
        let of = |scenario: &ResolvedScenario| {
            let What::Measure { measure: Measure::Timer(timer), .. } = &scenario.activities[0].activity.what
            else {
                panic!()
            };
            (scenario.blame_above, timer.break_at)
        };
        resolved.scenarios.iter().map(of).collect()
    };
    let own = Some(Nanos(3_000_000));
    assert_eq!(asked(&Choices::default()), [(Some(3_000_000), own), (None, None)]);
    let blamed = Choices { blame_above: Some(blame), ..Choices::default() };
    assert_eq!(asked(&blamed), [(Some(100_000), own), (None, None)]);
    let stopped = Choices { stop_above: Some(stop), ..Choices::default() };
    assert_eq!(asked(&stopped), [(Some(200_000), Some(stop)), (None, Some(stop))]);
}
