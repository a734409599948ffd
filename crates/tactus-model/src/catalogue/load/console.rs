//! `console`: writing to a serial console.

use crate::catalogue::declare::word;

word! {
    /// Writes lines of text to a serial console of the environment, as somebody's terminal would be written to: each byte is
    /// an access to the port's registers, and in a guest an exit, or several. Refused where no serial line is a console of
    /// the kernel, or where it cannot be opened. A round is a byte that the kernel took; one that cannot send so many takes
    /// fewer.
    #[derive(Default)]
    pub struct Console = Load "console": "writing to a serial console" {
        /// Bytes per second; 11520 fill a line of 115200 baud.
        pub rate: Option<u32> = 11_520, 100..=1_000_000;
    }
}
