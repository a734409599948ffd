//! Figures: latencies over time and their distributions, drawn once in colours that stand for
//! something ([`theme`]) and shown either in a page that is light or dark, or on their own.

mod axis;
mod canvas;
mod histogram;
mod over_time;
mod per_core;
mod scale;
mod separation;
mod set;
mod theme;

pub use canvas::{Figure, Hover, Spot};
pub use histogram::histograms;
pub use over_time::{Lines, Reference, over_time};
pub use set::{EnvironmentFigures, environments, of_page, requested};
pub use theme::{standalone, themed};
