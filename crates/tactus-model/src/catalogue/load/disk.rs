//! `disk`: a file.

use crate::catalogue::declare::word;
use crate::size::Bytes;

word! {
    /// A process per CPU writes a file without a name, with an fsync after each MiB. It then drops the file from the
    /// page cache and reads it again. This uses the block layer, device interrupts and writeback. The load is refused
    /// if only memory can be written (tmpfs, a guest's initramfs). A round is 64 KiB written or read.
    #[derive(Default)]
    pub struct Disk = Load "disk": "writes, syncs and reads a file" {
        /// Directory of the environment for the file. Left out: the first of /var/tmp, /tmp and / that can be written
        /// and is not in memory.
        pub directory: Option<String>;
        /// Size of the file of each CPU.
        pub bytes: Option<Bytes> = Bytes(16 << 20), 1..=1 << 40;
    }
}
