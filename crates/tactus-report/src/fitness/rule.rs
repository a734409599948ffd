//! The rule: compares numbers with a class. It does not check the evidence of the numbers.

use tactus_model::number::float;
use tactus_model::plan::Class;

use crate::units::latency_up;

/// The meaning of the smallest and the largest latency for a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The shortest cycle of the class in which the worst response has room, in ns; `None` if even the
    /// longest is too short.
    pub shortest_cycle_ns: Option<u64>,
    /// Whether its most demanding applications are served as well.
    pub demanding: bool,
    /// The smaller of two remaining shares: of the allowed jitter, and of the room in the longest cycle.
    pub margin: f64,
    /// What is lacking, a few words each; empty if it keeps all that the class allows.
    pub lacks: Vec<String>,
}

/// How much of the cycle a latency may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The share that the class leaves to latency: what an application computes comes on top.
    Share,
    /// All of it: the latency includes the time in which the application computes.
    Cycle,
}

/// Compares the best and the worst latency with a class.
///
/// Jitter is the worst less the best, and may be at most what the class allows. The worst must lie within its
/// share of the cycle, or within the whole cycle if it includes the application's computing.
#[must_use]
pub fn held(class: &Class, best_ns: u64, worst_ns: u64, room: Room) -> Held {
    let jitter = worst_ns.saturating_sub(best_ns);
    let allowed = class.jitter.to.0;
    let share = match room {
        Room::Share => u64::from(class.share),
        Room::Cycle => 100,
    };
    let room = part(class.cycle.to.0, share);
    let least = worst_ns.saturating_mul(100).div_ceil(share.max(1));
    let shortest_cycle_ns = Some(least.max(class.cycle.from.0)).filter(|_| worst_ns <= room);
    let mut lacks = Vec::new();
    if jitter > allowed {
        lacks.push(format!("jitter {}, limit {}", latency_up(jitter), latency_up(allowed)));
    }
    if worst_ns > room {
        let cycle = latency_up(class.cycle.to.0);
        let of = match (share, class.cycle.from == class.cycle.to) {
            (100, true) => format!("cycle {cycle}"),
            (100, false) => format!("longest cycle {cycle}"),
            (_, true) => format!("limit {} ({share} % of the cycle)", latency_up(room)),
            (_, false) => format!("limit {} ({share} % of the longest cycle)", latency_up(room)),
        };
        lacks.push(format!("worst {}, {of}", latency_up(worst_ns)));
    }
    let used = (float(jitter) / float(allowed.max(1))).max(float(worst_ns) / float(room.max(1)));
    Held {
        demanding: lacks.is_empty()
            && jitter <= class.jitter.from.0
            && worst_ns <= part(class.cycle.from.0, share),
        shortest_cycle_ns,
        margin: 1.0 - used,
        lacks,
    }
}

/// `percent` per cent of a length of time, rounded down.
fn part(ns: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(ns) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Class, Held, Room};
    use crate::fitness::classes::{built_in, read};

    fn held(class: &Class, best_ns: u64, worst_ns: u64) -> Held {
        super::held(class, best_ns, worst_ns, Room::Share)
    }

    /// The four rows of intel-industrial-2014, table 3: minimum and maximum in ns.
    const PUBLISHED: [(u64, u64); 4] = [(2_280, 3_030), (4_670, 11_780), (4_900, 12_380), (4_950, 17_700)];

    fn fit(best: u64, worst: u64) -> Vec<&'static str> {
        let keeps = |class: &&Class| held(class, best, worst).lacks.is_empty();
        built_in().iter().filter(keeps).map(|class| class.name.as_str()).collect()
    }

    #[test]
    fn of_the_published_rows_the_native_one_is_fit_for_all_classes_and_the_others_for_plcs_only() {
        let fit: Vec<Vec<&str>> = PUBLISHED.into_iter().map(|(best, worst)| fit(best, worst)).collect();
        assert_eq!(fit[0], ["plc", "motion-control", "motor-drive"]);
        assert!(fit[1..].iter().all(|classes| classes == &["plc"]), "{fit:?}");
    }

    #[test]
    fn what_is_lacking_is_said_with_its_numbers() {
        let lacks = held(&built_in()[1], 4_950, 17_700).lacks;
        assert_eq!(lacks, ["jitter 12.75 us, limit 5 us"]);
        let lacks = held(&built_in()[2], 100_000, 250_000).lacks;
        assert_eq!(lacks, ["jitter 150 us, limit 2 us", "worst 250 us, longest cycle 100 us"]);
    }

    #[test]
    fn the_shortest_cycle_has_room_for_the_worst_response_and_belongs_to_the_class() {
        let plc = &built_in()[0];
        assert_eq!(held(plc, 4_950, 17_700).shortest_cycle_ns, Some(17_700));
        assert_eq!(held(plc, 2_280, 3_030).shortest_cycle_ns, Some(10_000));
        assert_eq!(held(plc, 0, 100_000_001).shortest_cycle_ns, None);
    }

    #[test]
    fn only_a_share_of_the_cycle_is_taken_where_the_class_says_so() {
        let class = |share: u32| {
            let text =
                format!("[[class]]\nname = \"a\"\ncycle = \"100us\"\njitter = \"1ms\"\nshare = {share}\n");
            read(&text).unwrap().remove(0)
        };
        assert!(held(&class(30), 0, 30_000).lacks.is_empty());
        assert_eq!(held(&class(30), 0, 30_001).lacks, ["worst 30.01 us, limit 30 us (30 % of the cycle)"]);
        assert_eq!(held(&class(100), 0, 100_001).lacks, ["worst 100.1 us, cycle 100 us"]);
        let wide = "[[class]]\nname = \"a\"\ncycle = { from = \"10us\", to = \"1ms\" }\njitter = \"1ms\"\nshare = 30\n";
        let wide = read(wide).unwrap().remove(0);
        assert_eq!(held(&wide, 0, 30_001).shortest_cycle_ns, Some(100_004));
    }

    #[test]
    fn a_latency_that_includes_computing_may_take_the_whole_cycle() {
        let text = "[[class]]\nname = \"a\"\ncycle = \"100us\"\njitter = \"1ms\"\nshare = 30\n";
        let class = read(text).unwrap().remove(0);
        let response = |worst| super::held(&class, 0, worst, Room::Cycle);
        assert!(response(100_000).lacks.is_empty() && !held(&class, 0, 100_000).lacks.is_empty());
        assert_eq!(response(100_001).lacks, ["worst 100.1 us, cycle 100 us"]);
        assert!((response(25_000).margin - 0.75).abs() < 1e-9);
    }

    #[test]
    fn the_margin_is_what_the_tightest_limit_leaves() {
        let motion = &built_in()[1];
        assert!((held(motion, 1_000, 3_500).margin - 0.5).abs() < 1e-9);
        assert!(held(motion, 1_000, 11_000).margin < -0.9);
        assert!((held(&built_in()[2], 90_000, 90_500).margin - 0.095).abs() < 1e-9, "room, not jitter");
    }

    #[test]
    fn the_most_demanding_applications_need_the_least_jitter_and_the_shortest_cycle() {
        let plc = &built_in()[0];
        let demanding = |best, worst| held(plc, best, worst).demanding;
        assert!(demanding(2_280, 3_030));
        assert!(!demanding(4_670, 11_780), "its worst has no room in 10 us");
        assert!(!demanding(0, 10_001), "its jitter is above 10 us");
    }

    #[test]
    fn no_number_is_too_large_or_upside_down() {
        for class in built_in() {
            assert!(held(class, 0, u64::MAX).shortest_cycle_ns.is_none());
            assert!(held(class, u64::MAX, 0).margin <= 1.0);
        }
    }
}
