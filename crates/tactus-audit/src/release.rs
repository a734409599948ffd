//! The release of a kernel.

use tactus_model::facts::Facts;

/// A kernel, by what uname says of it. A version that cannot be read is 0.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// 6 of `6.12.43-rt`.
    pub major: u32,
    /// 12 of `6.12.43-rt`.
    pub minor: u32,
    /// Whether it is fully preemptible: `PREEMPT_RT` (mainline, patches since 5.x) or `PREEMPT RT`
    /// (patches before) in its version, or what its configuration or `/sys/kernel/realtime` say.
    pub rt: bool,
}

impl Kernel {
    /// Reads it out of facts.
    #[must_use]
    pub fn of(facts: &Facts) -> Self {
        let mut numbers = facts
            .text("uname:release")
            .unwrap_or_default()
            .split(|c: char| !c.is_ascii_digit())
            .map(|digits| digits.parse().unwrap_or(0));
        let version = facts.text("uname:version").unwrap_or_default();
        Self {
            major: numbers.next().unwrap_or(0),
            minor: numbers.next().unwrap_or(0),
            rt: version.contains("PREEMPT_RT")
                || version.contains("PREEMPT RT")
                || facts.text("config:CONFIG_PREEMPT_RT") == Some("y")
                || facts.text("/sys/kernel/realtime") == Some("1"),
        }
    }

    /// Whether its version is known and at least this.
    #[must_use]
    pub fn since(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// Whether its version is known and less than this.
    #[must_use]
    pub fn before(self, major: u32, minor: u32) -> bool {
        self.major > 0 && !self.since(major, minor)
    }
}
