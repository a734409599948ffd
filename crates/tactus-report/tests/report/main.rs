//! The report, on whole bundles that were written for it: what follows from them, and what every format shows.

mod analysis;
mod audit;
mod caches;
mod common;
mod curves;
mod degradation;
mod document;
mod effects;
mod exits;
mod fitness;
mod interrupts;
mod matrix;
mod never_made;
mod passes;
mod proof;
mod render;
mod requirements;
mod separation;
mod separation_simulation;
mod simulation;
mod strangers;
mod tail;
mod tail_simulation;
mod valued_claims;
mod values;
