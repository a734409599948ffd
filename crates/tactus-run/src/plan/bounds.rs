//! Parameters of measurements, loads and faults, within the bounds that the catalogue gives them.

use tactus_model::catalogue::{Fault, Load, Measure, OutOfRange};
use tactus_model::control::ControlBy;
use tactus_model::plan::{Disturbance, Placed, Scenario};

use super::{PlanError, Source};

/// A table of a plan at its path: its word, and the parameter that is beyond its bounds.
type Said = (String, &'static str, Result<(), OutOfRange>);

fn measure(path: String, table: &Measure) -> Said {
    (path, table.kind(), table.check())
}

fn load(path: String, table: &Load) -> Said {
    (path, table.kind(), table.check())
}

fn fault(path: String, table: &Fault) -> Said {
    (path, table.kind(), table.check())
}

/// The tables of a shorthand, which may be one or a list.
fn each<T>(path: &str, tables: &[Placed<T>], said: fn(String, &T) -> Said) -> Vec<Said> {
    let at = |n| if tables.len() == 1 { path.to_owned() } else { format!("{path}[{n}]") };
    tables.iter().enumerate().map(|(n, placed)| said(at(n), &placed.what)).collect()
}

/// Checks all that a scenario, or the defaults of all, say of parameters.
///
/// # Errors
/// The first that is beyond its bounds, with line and key.
pub fn scenario(scenario: &Scenario, path: &str, source: &Source) -> Result<(), PlanError> {
    let mut all: Vec<Said> = Vec::new();
    all.extend(scenario.measurement.iter().map(|table| measure(format!("{path}.measurement"), table)));
    if let Some(ControlBy::Fault(table)) = &scenario.control {
        all.push(fault(format!("{path}.control"), table));
    }
    all.extend(each(&format!("{path}.load"), &scenario.load, load));
    all.extend(each(&format!("{path}.fault"), &scenario.fault, fault));
    for (n, activity) in scenario.activity.iter().enumerate() {
        let path = format!("{path}.activity[{n}]");
        all.extend(activity.measure.iter().map(|table| measure(format!("{path}.measure"), table)));
        all.extend(activity.load.iter().map(|table| load(format!("{path}.load"), table)));
        all.extend(activity.fault.iter().map(|table| fault(format!("{path}.fault"), table)));
    }
    first(all, source)
}

/// Checks what a separation says of parameters.
///
/// # Errors
/// The first that is beyond its bounds, with line and key.
pub fn disturbances(disturb: &[Disturbance], source: &Source) -> Result<(), PlanError> {
    let mut all: Vec<Said> = Vec::new();
    for (n, disturbance) in disturb.iter().enumerate() {
        let path = format!("separation.disturb[{n}]");
        all.extend(disturbance.load.iter().map(|table| load(format!("{path}.load"), table)));
        all.extend(disturbance.fault.iter().map(|table| fault(format!("{path}.fault"), table)));
    }
    first(all, source)
}

fn first(all: Vec<Said>, source: &Source) -> Result<(), PlanError> {
    for (path, kind, checked) in all {
        checked.map_err(|error| {
            source.error(&format!("{path}.{}", error.key), format!("{kind}: {error}"), error.hint())
        })?;
    }
    Ok(())
}
