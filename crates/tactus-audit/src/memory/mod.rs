//! Memory and time.

room! {
    clocksource,
    compaction,
    huge_pages,
    locking,
    merging,
    numa_balancing,
    reserved_pages,
    skew_tick,
    swap,
    vmstat,
    writeback,
}

#[cfg(test)]
mod tests;
