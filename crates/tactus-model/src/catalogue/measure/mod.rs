//! What a probe can measure.

super::declare::family! {
    /// A measurement and its own parameters; what all have in common (interval, priority, policy,
    /// threads) stands in the scenario.
    pub enum Measure, MEASURES { timer::Timer, spin::Spin }
}
