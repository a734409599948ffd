//! The statistics where the truth is known, and beside those of SciPy.

mod scipy;
mod tail_simulation;

#[path = "../../../tactus-report/tests/report/export/python.rs"]
mod python;
