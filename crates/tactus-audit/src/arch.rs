//! Families of processors.

use serde::Serialize;

/// Processors that a check concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// All.
    Any,
    /// x86 of any maker.
    X86,
    /// Intel's.
    Intel,
    /// 64-bit Arm.
    Arm64,
}
