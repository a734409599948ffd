//! `console`: writing to a serial console.

use crate::catalogue::declare::word;

word! {
    /// Writes lines of text to a serial console of the environment. Each byte is an access to the port's registers, and
    /// in a guest one or more exits. The load is refused if no serial line is a console of the kernel, or if the line
    /// cannot be opened. A round is a byte that the kernel took. A line that cannot send as fast as `rate` takes fewer
    /// bytes.
    #[derive(Default)]
    pub struct Console = Load "console": "writing to a serial console" {
        /// Bytes per second; 11520 fill a line of 115200 baud.
        pub rate: Option<u32> = 11_520, 100..=1_000_000;
    }
}
