//! Everything of tactus that touches a machine: environments, kernels, runs, bundles.

pub mod audit;
pub mod bundle;
pub mod environment;
pub mod guardian;
pub mod kernel;
pub mod plan;
pub mod probe;
pub mod prove;
mod resctrl;
pub mod run;
pub mod system;
pub mod tune;
