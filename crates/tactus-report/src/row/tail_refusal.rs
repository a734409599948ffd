//! Reasons for no bound on a tail, in words.

use tactus_statistics::tail::{Against, Refusal};

use crate::units::{count, duration, latency};

/// The report interval of a longer run, of whose maxima blocks are made, in ns.
const SECOND_NS: u64 = 1_000_000_000;

/// The reason.
pub fn sentence(why: &Refusal) -> String {
    match why {
        Refusal::TooShort { blocks, least, block_ns } => format!(
            "{} of {} are too few: {} are needed{}",
            if *blocks == 1 { "1 block".to_owned() } else { format!("{} blocks", count(*blocks)) },
            duration(*block_ns),
            count(*least),
            if *block_ns < SECOND_NS { " (of 1 s in a longer run)" } else { "" }
        ),
        Refusal::Unsteady { failed, block_ns, longer } => {
            let says: Vec<&str> = failed.iter().map(|one| says(one.against)).collect();
            format!(
                "not stationary or not independent, even in blocks of {}: {}{}",
                duration(*block_ns),
                says.join(", "),
                more(longer.is_some())
            )
        }
        Refusal::Clustered { index, block_ns, longer } => format!(
            "the largest values come in clusters, even in blocks of {} (extremal index {index:.2}){}",
            duration(*block_ns),
            more(longer.is_some())
        ),
        Refusal::Tied { part } => format!(
            "{:.0} % of the largest values are equal to another one: they were measured too coarsely",
            100.0 * part
        ),
        Refusal::TooFew { exceedances, least } => {
            format!("{} exceedances are too few: {} are needed", count(*exceedances), count(*least))
        }
        Refusal::NoThreshold { p } => {
            format!(
                "the tail fits no single distribution above any threshold (Anderson-Darling, p at most \
                {p:.2})"
            )
        }
        Refusal::Disagreement { by_exceedances_ns, by_blocks_ns } => format!(
            "methods disagree: {} by exceedances, {} by maxima of longer blocks",
            latency(*by_exceedances_ns),
            latency(*by_blocks_ns)
        ),
        Refusal::TooHeavy { xi } => {
            format!("the tail may be too heavy for any bound (xi up to {xi:.2})")
        }
        Refusal::TooFar { horizon_ns, most_ns, .. } => format!(
            "{} are too far beyond the measurement, which supports {} at most",
            duration(*horizon_ns),
            duration(*most_ns)
        ),
    }
}

/// The meaning of a failed test of the blocks.
const fn says(against: Against) -> &'static str {
    match against {
        Against::Correlation => "successive blocks are alike",
        Against::Drift => "their level drifts",
        Against::Clusters => "the large ones come together",
        Against::Halves => "the second half differs from the first",
    }
}

const fn more(longer: bool) -> &'static str {
    if longer { "; longer blocks need a longer run" } else { "" }
}
