//! Ports of a PC, for a program that may write to them.
#![cfg(target_arch = "x86_64")]
#![expect(unsafe_code, reason = "a port has no other address")]

use std::io;

/// The port of the codes of a PC's self-test: nothing is behind it.
const PORT: u16 = 0x80;

/// The right to write to it, of this process until its end.
pub struct Port(());

impl Port {
    /// # Errors
    /// When the kernel does not give it (CAP_SYS_RAWIO, lockdown).
    pub fn open() -> io::Result<Self> {
        // SAFETY: a system call that lets this process write to one port, which has no device.
        match unsafe { libc::ioperm(PORT.into(), 1, 1) } {
            0 => Ok(Self(())),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Writes a byte.
    #[inline]
    pub fn write(&self) {
        // SAFETY: `open` got the right, nothing is behind the port, and the instruction touches no memory.
        unsafe { std::arch::asm!("out dx, al", in("dx") PORT, in("al") 0_u8, options(nomem, nostack)) };
    }
}
