//! The version of the data set.

use tactus_model::bundle::Format;

/// The version of the data set that this program writes. Another major version is refused; of a minor one only columns,
/// or tables, were added.
pub const VERSION: Format = Format { major: 1, minor: 2 };
