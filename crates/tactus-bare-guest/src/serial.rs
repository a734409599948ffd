//! The serial line (a 16550 at COM1's ports): the guest reads from it, and writes to it where no faster device
//! exists. A second one, at COM2's ports, is its console, if the machine has it.
//!
//! A byte takes two port accesses, and every access exits to the hypervisor. QEMU's `isa-debugcon` takes any number
//! of bytes in one access. The guest writes to it where it exists, because writing disturbs a running measurement.

use core::fmt::{self, Write};

use crate::sys::cpu::{inb, outb, outs};

const COM1: u16 = 0x3f8;
const COM2: u16 = 0x2f8;
/// The register of a line that says how it stands.
const STATUS: u16 = 5;
/// The value that an absent device reads as.
const NOTHING: u8 = 0xff;
const STATUS_HEARD: u8 = 1;
const STATUS_ROOM: u8 = 1 << 5;

/// `isa-debugcon`: what is written there goes to a file of the host, and a read of it says that it is there.
const DEBUG: u16 = 0xe9;
const DEBUG_IS_THERE: u8 = 0xe9;

/// Sets the lines up: 115200 baud, eight bits, their queues on, no interrupts (they are asked).
pub fn begin() {
    for line in [COM1, COM2] {
        for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 0x03), (2, 0x07), (4, 0x03)] {
            outb(line + register, value);
        }
    }
}

/// Says bytes, and waits until they are taken.
pub fn write(bytes: &[u8]) {
    if inb(DEBUG) == DEBUG_IS_THERE {
        return outs(DEBUG, bytes);
    }
    write_to(COM1, bytes);
}

fn write_to(line: u16, bytes: &[u8]) {
    for byte in bytes {
        while inb(line + STATUS) & STATUS_ROOM == 0 {}
        outb(line, *byte);
    }
}

/// The next byte that was said to it, if there is one.
pub fn read() -> Option<u8> {
    (inb(COM1 + STATUS) & STATUS_HEARD != 0).then(|| inb(COM1))
}

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let line = if inb(COM2 + STATUS) == NOTHING { COM1 } else { COM2 };
        write_to(line, text.as_bytes());
        Ok(())
    }
}

/// Prints a text on the console, for a person who looks after this guest.
pub fn say(text: fmt::Arguments) {
    let _ = Console.write_fmt(text);
}
