//! What is a setting worth on this machine? A plan of pairs: the same measurement under load with the
//! setting and without it, in an order drawn by lot. The run is a run like any other, and the report
//! judges the pairs.

mod ab_plan;
mod default_value;
mod setting;

pub use ab_plan::{Request, plan};
pub use setting::{Found, SettingError, changes, find};
