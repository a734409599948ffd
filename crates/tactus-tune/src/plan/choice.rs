//! The user's choices for a plan.

/// The user's choices, by the ids of audit checks (or the profile's word if no check answers).
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Nothing but these, when there are any.
    pub only: Vec<String>,
    /// Not these.
    pub without: Vec<String>,
    /// These too, which the profile does not call for.
    pub with: Vec<String>,
    /// Nothing beyond TuneD's own values.
    pub plain: bool,
    /// Interrupts of the real-time work itself, which stay where they are.
    pub own_irq: Vec<u32>,
    /// Interrupts that leave the isolated CPUs, though they are allowed nowhere else.
    pub move_irq: Vec<u32>,
}
