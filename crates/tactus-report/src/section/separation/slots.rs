//! The largest latency of every slot of time of a row.

use std::collections::BTreeMap;

use tactus_model::bundle::Row;
use tactus_model::series::SeriesKey;

/// The length of a slot of time, in ns: at least `least_ns`, and a multiple of the kept ticks of these rows.
/// Slots must be equally long to be compared.
#[must_use]
pub fn slot_of<'a>(rows: impl Iterator<Item = &'a Row>, least_ns: u64) -> u64 {
    let joined = rows.filter_map(|row| row.ticks.joined_ns()).max();
    joined.map_or(least_ns, |joined| least_ns.next_multiple_of(joined.max(1)))
}

/// The largest latency of every slot of time, in ns. Slots that are not measured to at least a half are
/// left out.
pub fn slots(row: &Row, slot_ns: u64, here: impl Fn(&SeriesKey) -> bool) -> Vec<u64> {
    let own = || row.ticks.iter().filter(|(key, _)| here(key)).map(|(_, stretch)| stretch);
    // Ticks end on their time or a little later: the middle says to which slot one belongs.
    let last = own().map(|stretch| (stretch.last + 1, stretch.at_ns)).max().unwrap_or((1, 0));
    let half = last.1 / last.0.max(1) / 2;
    let mut slots: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for stretch in own() {
        let middle = stretch.at_ns.saturating_sub(half.saturating_mul(stretch.span()));
        let slot = slots.entry(middle / slot_ns.max(1)).or_default();
        slot.0 = slot.0.max(stretch.max_ns.unwrap_or(0));
        slot.1 = slot.1.saturating_add(stretch.cycles).saturating_add(stretch.overruns);
    }
    let most = slots.values().map(|(_, cycles)| *cycles).max().unwrap_or(0);
    slots
        .into_values()
        .filter(|(max, cycles)| *max > 0 && cycles.saturating_mul(2) >= most)
        .map(|(max, _)| max)
        .collect()
}
