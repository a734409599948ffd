//! Tests how much a setting is worth on this machine. The plan has pairs: the same measurement under load with the
//! setting and without it, in random order. The run is a run like any other, and the report judges the pairs.

mod ab_plan;
mod default_value;
mod setting;

pub use ab_plan::{Request, plan};
pub use setting::{Found, SettingError, changes, find};
