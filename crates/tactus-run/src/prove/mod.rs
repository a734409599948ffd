//! What is a setting worth on this machine? A plan of pairs: the same measurement under load with the
//! setting and without it, in an order drawn by lot. The run is a run like any other, and the report
//! judges the pairs.

mod contrary;
mod pairs;
mod setting;

pub use pairs::{Request, plan};
pub use setting::{Found, SettingError, changes, find};
