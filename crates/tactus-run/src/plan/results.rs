//! Checks that the results in a plan fit its scenarios. Bounds and published figures of latencies belong to
//! measurements of latency; those of values name an item and its unit.

use tactus_model::Nanos;
use tactus_model::bundle::RowResult;
use tactus_model::catalogue::Item;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::Timer;
use tactus_model::outcome::{Quantity, Yields};
use tactus_model::plan::{Plan, Reference, Require, Scenario};

use super::{PlanError, Source};

/// Checks the bounds of every scenario and every reference.
pub(super) fn check(plan: &Plan, source: &Source) -> Result<(), PlanError> {
    for (at, scenario) in plan.scenario.iter().enumerate() {
        if let Some(require) = &scenario.require {
            bounds(require, &Measured::of(plan, scenario), &format!("scenario[{at}].require"), source)?;
        }
    }
    for (at, reference) in plan.reference.iter().enumerate() {
        let named = |scenario: &&Scenario| scenario.name.as_ref() == Some(&reference.scenario);
        // Scenarios of a separation are not written in the plan; they measure latency.
        let measured =
            plan.scenario.iter().find(named).map_or(Measured::LATENCY, |own| Measured::of(plan, own));
        figures(reference, &measured, &format!("reference[{at}]"), source)?;
    }
    Ok(())
}

/// A caution if a latency limit is longer than the period and has no limit on missed periods; else `None`. This is
/// not an error: a program's deadline may be longer than the period in which it polls. But a cycle that is late by
/// more than a period has missed others, and can still be within the limit.
pub fn beyond_the_period(row: &RowResult) -> Option<String> {
    let require = row.require.as_ref().filter(|require| require.overruns.is_none())?;
    let quantiles = require.quantiles().into_iter().map(|(_, _, limit)| limit);
    let limit = require.max.into_iter().chain(require.jitter).chain(quantiles).max()?;
    let period = Nanos(row.interval_ns);
    // A program's own periods are not known.
    let known = row.measurement.has_periods() && !matches!(row.measurement, Measure::Application(_));
    (known && limit > period).then(|| {
        format!(
            "the limit of {limit} is longer than the period of {period}: a latency within it may miss \
             periods. Add `--overruns 0` (in a plan `overruns = 0`), or measure at your program's period \
             (`-i`)"
        )
    })
}

/// The kind of results of a scenario.
struct Measured {
    latency: bool,
    /// Whether it has periods that can be missed.
    periods: bool,
    items: Vec<&'static Item>,
}

impl Measured {
    const LATENCY: Self = Self { latency: true, periods: true, items: Vec::new() };

    fn of(plan: &Plan, scenario: &Scenario) -> Self {
        let default = Measure::Timer(Timer::default());
        let shorthand =
            scenario.measurement.as_ref().or(plan.defaults.measurement.as_ref()).unwrap_or(&default);
        let full = scenario.activity.iter().filter_map(|activity| activity.measure.as_ref());
        let all: Vec<&Measure> = if scenario.activity.is_empty() { vec![shorthand] } else { full.collect() };
        Self {
            latency: all.iter().any(|measure| measure.yields() == Yields::Latency),
            periods: all.iter().any(|measure| measure.yields() == Yields::Latency && measure.has_periods()),
            items: all.iter().flat_map(|measure| measure.entry().items).collect(),
        }
    }

    /// Refuses an item that is not measured, and a quantity that it cannot be.
    fn check(&self, name: &str, quantity: Quantity, key: &str, source: &Source) -> Result<(), PlanError> {
        let known: Vec<String> = self.items.iter().map(|item| format!("`{}`", item.name)).collect();
        let Some(item) = self.items.iter().find(|item| item.name == name) else {
            let hint = match known.is_empty() {
                true => "only measurements of values have items: `tactus explain os`".to_owned(),
                false => format!("its items are {}", known.join(", ")),
            };
            return Err(source.error(key, format!("the scenario measures no `{name}`"), hint));
        };
        if quantity.number_in(item.unit).is_none() {
            let message = format!("`{name}` is measured in {}, not in {quantity}", item.unit);
            return Err(source.error(key, message, format!("give a number of {}", item.unit)));
        }
        Ok(())
    }
}

fn bounds(require: &Require, measured: &Measured, path: &str, source: &Source) -> Result<(), PlanError> {
    if let Some(warn) = &require.warn {
        let path = format!("{path}.warn");
        if warn.warn.is_some() || warn.cycles.is_some() {
            let key = if warn.warn.is_some() { "warn" } else { "cycles" };
            let message = format!("`{key}` has no effect in limits that only warn");
            return Err(source.error(
                &format!("{path}.{key}"),
                message,
                "write it beside `warn`, or leave it out",
            ));
        }
        bounds(warn, measured, &path, source)?;
    }
    if require.overruns.is_some() && !measured.periods {
        return Err(source.error(
            &format!("{path}.overruns"),
            "the scenario measures nothing with periods, so none can be missed",
            "bound `max`, or measure `timer`",
        ));
    }
    if let Some(tail) = require.tail.filter(|tail| tail.max.0 == 0 || tail.horizon.0 == 0) {
        let key = if tail.max.0 == 0 { "max" } else { "horizon" };
        return Err(source.error(
            &format!("{path}.tail.{key}"),
            format!("`{key}` of the tail is 0"),
            "write it as in tail = { max = \"200us\", horizon = \"24h\" }",
        ));
    }
    if require.on(Yields::Latency).is_some() && !measured.latency {
        let items: Vec<&str> = measured.items.iter().map(|item| item.name).collect();
        return Err(source.error(
            path,
            "there are bounds on a latency, but the scenario measures none",
            format!(
                "bound its values instead: values = {{ \"{}\" = \"...\" }}",
                items.first().unwrap_or(&"")
            ),
        ));
    }
    require
        .values
        .iter()
        .try_for_each(|(name, bound)| measured.check(name, *bound, &format!("{path}.values.{name}"), source))
}

fn figures(reference: &Reference, measured: &Measured, path: &str, source: &Source) -> Result<(), PlanError> {
    let Reference { min, mean, max, threads, .. } = reference;
    let latency = [min, mean, max].iter().any(|figure| figure.is_some()) || !threads.is_empty();
    match (&reference.item, reference.value) {
        (Some(_), Some(_)) if latency => Err(source.error(
            path,
            "a reference has figures of both a latency and a value",
            "write a table [[reference]] for each",
        )),
        (Some(name), Some(value)) => measured.check(name, value, &format!("{path}.item"), source),
        (None, None) if !measured.latency => Err(source.error(
            path,
            format!("`{}` measures no latency", reference.scenario),
            "name what was published with `item` and `value`",
        )),
        (None, None) => Ok(()),
        _ => Err(source.error(
            path,
            "`item` and `value` belong together",
            "write both: item = \"signal handler\", value = \"3.48us\"",
        )),
    }
}
