//! The serial line (a 16550 at COM1's ports): what this guest hears, and says where nothing else carries it.
//!
//! A byte takes two accesses of a port, and every one leaves the guest. QEMU's `isa-debugcon` takes as many bytes as there
//! are at once: where it is, it is what this guest speaks by, because saying disturbs what is measured meanwhile.

use core::fmt::{self, Write};

use crate::sys::cpu::{inb, outb, outs};

const COM1: u16 = 0x3f8;
const STATUS: u16 = COM1 + 5;
const STATUS_HEARD: u8 = 1;
const STATUS_ROOM: u8 = 1 << 5;

/// `isa-debugcon`: what is written there goes to a file of the host, and a read of it says that it is there.
const DEBUG: u16 = 0xe9;
const DEBUG_IS_THERE: u8 = 0xe9;

/// Sets it up: 115200 baud, eight bits, its queues on, no interrupts (it is asked).
pub fn begin() {
    for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 0x03), (2, 0x07), (4, 0x03)] {
        outb(COM1 + register, value);
    }
}

/// Says bytes, and waits until they are taken.
pub fn write(bytes: &[u8]) {
    if inb(DEBUG) == DEBUG_IS_THERE {
        return outs(DEBUG, bytes);
    }
    for byte in bytes {
        while inb(STATUS) & STATUS_ROOM == 0 {}
        outb(COM1, *byte);
    }
}

/// The next byte that was said to it, if there is one.
pub fn read() -> Option<u8> {
    (inb(STATUS) & STATUS_HEARD != 0).then(|| inb(COM1))
}

struct Line;

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write(text.as_bytes());
        Ok(())
    }
}

/// Says a text. Whoever hears it takes it for what it is: no frame.
pub fn say(text: fmt::Arguments) {
    let _ = Line.write_fmt(text);
}
