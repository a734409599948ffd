//! Whether a latency is much: beside the period it was measured at, and beside what tuned systems were published with.

use tactus_model::number::float;

use crate::stats::Line;
use crate::units::{duration, latency, number};

/// The least and the largest maximum that was published of a kind of environment, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Where it was measured.
    pub place: &'static str,
    /// The smallest maximum.
    pub least_ns: u64,
    /// The largest.
    pub most_ns: u64,
}

/// Maxima of wake-ups on tuned real-time systems. The studies `redhat-openstack-2018` (page 17),
/// `intel-xeon-2015` (figure 3) and `osadl-2023` (latency measurements) reproduce them; a test compares them
/// with the studies.
pub const PUBLISHED: &[Published] = &[
    Published { place: "hosts", least_ns: 17_000, most_ns: 91_000 },
    Published { place: "KVM guests", least_ns: 8_000, most_ns: 606_000 },
];

/// "That is 31 periods of 200 us. For scale: tuned real-time systems were published with 17.0 to 91.0 us on
/// hosts, ..."; `None` if no real wake-up was measured.
pub fn scale(lines: &[&Line], period_ns: Option<u64>) -> Option<String> {
    let max = lines.iter().filter_map(|line| line.figures.as_ref()?.max_ns).max()?;
    let share = period_ns.filter(|period| *period > 0).map(|period| {
        let part = float(max) / float(period);
        let period = duration(period);
        if part >= 1.0 {
            format!("{} is {} periods of {period}. ", latency(float(max)), number(part))
        } else {
            format!(
                "{} is {} % of the period of {period}. ",
                latency(float(max)),
                number((part * 100.0).ceil())
            )
        }
    });
    let of = |one: &Published| {
        format!("{} to {} on {}", latency(float(one.least_ns)), latency(float(one.most_ns)), one.place)
    };
    let published: Vec<String> = PUBLISHED.iter().map(of).collect();
    Some(format!(
        "{}For scale: published maxima of tuned real-time systems are {}.",
        share.unwrap_or_default(),
        published.join(", ").replace("on KVM", "in KVM")
    ))
}
