//! Shared caches and containers.

room! { caches, containers, igpu, resctrl }

#[cfg(test)]
mod tests;
