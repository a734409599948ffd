//! Figures: latencies over time and their distributions. A figure is drawn once, in colours by role
//! ([`theme`]). It is shown in a light or dark page, or alone.

mod axis;
mod bars;
mod canvas;
mod costs;
mod curves;
mod exceedance;
mod forest;
mod histogram;
mod mark;
mod over_time;
mod per_core;
mod plot;
mod scale;
mod stacked;
mod tail;
mod theme;
mod timeline;

pub use bars::{Bar, Panel, bars};
pub use canvas::{Anchor, Canvas, FONT, Figure, Hover, Spot, WIDTH};
pub use costs::{Cost, Times, costs};
pub use curves::{Axes, CURVES, Curve, curves};
pub use exceedance::exceedances;
pub use forest::{Forested, forest};
pub use histogram::histograms;
pub use over_time::{Lines, Reference, over_time};
pub use per_core::per_core;
pub use plot::{Plot, PlotAxis, PlotKind, PlotMark, PlotSeries, short};
pub use stacked::{Kind, Shade, Stack, Stacks, stacked};
pub use tail::{quantiles, return_levels, shapes};
pub use theme::{MARK, MUTED, SERIES, series, standalone, themed};
pub use timeline::{Timeline, timelines};
