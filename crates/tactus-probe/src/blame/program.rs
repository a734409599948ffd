//! The programs, as instructions: one for each tracepoint, which records its event in the ring of its CPU. On CPUs
//! without a ring it ends at once.

use std::ffi::CStr;

use crate::bpf::instruction::{
    EXIT, FRAME, THREAD, TIME, add, call, code, copy, load, map_value, set, store, word,
};

use tactus_model::trace::EventKind;

/// `bpf_get_smp_processor_id`.
const CPU: i32 = 8;
/// `bpf_get_current_comm`.
const NAME: i32 = 16;

/// The format of an address: `hrtimer_wakeup+0x0/0x20`, and ` [MODULE]`.
pub const SYMBOL: &CStr = c"%pS";

/// Words before the records of a ring: the first is how many records were begun. A cache line.
pub const HEAD: usize = 8;
/// Words of a record: when; kind and number; the name of a thread.
pub const RECORD: usize = 4;
/// The position of the number in a record's second word; the kind is below it.
pub const NUMBER_SHIFT: u32 = 8;

/// Which argument of `sched_switch` is the state of the thread that leaves, since Linux 5.18. The first is whether it is
/// preempted.
const STATE: usize = 3;

/// `bpf_probe_read_kernel`, since Linux 5.5.
const READ: i32 = 113;
/// `bpf_snprintf`, since Linux 5.13.
const FORMAT: i32 = 165;

/// The source of a record's number. Offsets are those of the running kernel, in bytes.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    /// The thread that runs the program.
    Current,
    /// The tracepoint's first argument.
    Argument,
    /// A fixed number.
    Number(u32),
    /// No number; the first argument is a timer. `function`: the offset of its function, whose address is written in
    /// the place of a thread's name. `expires`: the offset of its due time, which is written after that.
    Timer {
        /// In a timer.
        function: i32,
        /// In a timer; `None`: it has no time in ns.
        expires: Option<i32>,
    },
    /// The first argument is a thread: its number. The ring is that of the CPU that it was last on.
    Thread {
        /// The offset of its number.
        pid: i32,
        /// The offset of its CPU.
        cpu: i32,
    },
}

/// A number that instructions have room for.
fn value(number: usize) -> i32 {
    i32::try_from(number).unwrap_or_default()
}

/// The program of a tracepoint that records `kind`. `cpus`: their rings follow each other in the map, each with
/// `records` records (a power of two). [`EventKind::Sleeps`] and [`EventKind::Preempted`] share a tracepoint; the
/// program chooses between them.
pub fn program(map: i32, cpus: &[u32], records: usize, (kind, of): (EventKind, Of)) -> Vec<u64> {
    let ring = (HEAD + records * RECORD) * size_of::<u64>();
    let mut program = vec![copy(6, 1)];
    match of {
        Of::Thread { cpu, .. } => {
            program.extend(read(cpu, 4));
            program.extend([code(0x15, 0, 0, 2, 0), set(0, 0), EXIT, load_half(0)]);
        }
        _ => program.push(call(CPU)),
    }
    for (place, cpu) in cpus.iter().enumerate() {
        // Over the two of each CPU that follows, and the end.
        let on = i16::try_from(2 * (cpus.len() - 1 - place) + 2).unwrap_or_default();
        program.extend([
            set(8, value(place * ring)),
            code(0x15, 0, 0, on, i32::try_from(*cpu).unwrap_or_default()),
        ]);
    }
    program.extend([
        set(0, 0),
        EXIT,
        map_value(1, map),
        0,
        add(8, 1),
        // The place is taken before it is written to: what interrupts this program takes the next one.
        set(7, 1),
        code(0xdb, 8, 7, 0, 1),
        code(0x57, 7, 0, 0, value(records - 1)),
        code(0x27, 7, 0, 0, value(RECORD * size_of::<u64>())),
        add(7, 8),
        call(TIME),
        store(7, 0, word(HEAD)),
    ]);
    match of {
        Of::Number(number) => program.push(set(1, number.cast_signed())),
        Of::Timer { .. } => program.push(set(1, 0)),
        Of::Current => program.extend([call(THREAD), code(0xbc, 1, 0, 0, 0), code(0xbc, 9, 0, 0, 0)]),
        Of::Argument => program.extend([load(1, 6, 0), code(0xbc, 1, 1, 0, 0)]),
        Of::Thread { pid, .. } => {
            program.extend(read(pid, 4));
            program.push(load_half(1));
        }
    }
    program.push(set(3, kind as i32));
    if kind == EventKind::Sleeps {
        program.extend([
            load(2, 6, 0),
            load(4, 6, word(STATE)),
            code(0xbc, 4, 4, 0, 0),
            code(0x55, 2, 0, 1, 0), // Preempted, whatever it was about to do.
            code(0x55, 4, 0, 1, 0), // Any state but that of those that can run.
            set(3, EventKind::Preempted as i32),
        ]);
    }
    program.extend([
        code(0x67, 1, 0, 0, NUMBER_SHIFT.cast_signed()),
        code(0x4f, 1, 3, 0, 0),
        store(7, 1, word(HEAD + 1)),
    ]);
    if kind.is_switch() {
        program.extend([
            code(0x15, 9, 0, 4, 0), // It idles: that has no name of its own.
            copy(1, 7),
            code(0x07, 1, 0, 0, i32::from(word(HEAD + 2))),
            set(2, 16),
            call(NAME),
        ]);
    }
    if let Of::Timer { function, expires } = of {
        program.extend(read(function, 8));
        program.extend([load(1, FRAME, -8), store(7, 1, word(HEAD + 2))]);
        match expires {
            Some(expires) => {
                program.extend(read(expires, 8));
                program.push(load(1, FRAME, -8));
            }
            None => program.push(set(1, 0)),
        }
        program.push(store(7, 1, word(HEAD + 3)));
    }
    program.extend([set(0, 0), EXIT]);
    program
}

/// Reads this many bytes from the address in the first argument into the frame: zeros if they cannot be read.
fn read(offset: i32, bytes: i32) -> [u64; 6] {
    [
        copy(1, FRAME),
        code(0x07, 1, 0, 0, -8),
        set(2, bytes),
        load(3, 6, 0),
        code(0x07, 3, 0, 0, offset),
        call(READ),
    ]
}

/// `to =` the four bytes that were read.
fn load_half(to: u8) -> u64 {
    code(0x61, to, FRAME, -8, 0)
}

/// The program that writes the name of a function, by its address, into a map of `length` bytes. `format`: the map that has
/// [`SYMBOL`]. The kernel asks its own table: reading /proc/kallsyms takes a tenth of a second, and a hundred times that in
/// an emulated guest.
pub fn spell(text: i32, length: usize, format: i32) -> Vec<u64> {
    vec![
        load(1, 1, 0),
        store(FRAME, 1, -8),
        map_value(1, text),
        0,
        set(2, value(length)),
        map_value(3, format),
        0,
        copy(4, FRAME),
        code(0x07, 4, 0, 0, -8),
        set(5, 8),
        call(FORMAT),
        set(0, 0),
        EXIT,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_finds_its_ring_and_others_end_at_once() {
        for cpus in [&[3][..], &[0, 1, 5]] {
            let program = program(7, cpus, 1_024, (EventKind::Leaves, Of::Current));
            let found = program.iter().position(|instruction| *instruction == map_value(1, 7)).unwrap();
            for place in 0..cpus.len() {
                let jump = program[2 + 2 * place + 1].to_ne_bytes();
                let to = 2 + 2 * place + 2 + usize::from(u16::from_ne_bytes([jump[2], jump[3]]));
                assert_eq!((jump[0], to), (0x15, found));
            }
            assert_eq!(program[found - 1], EXIT);
            assert_eq!(program.last(), Some(&EXIT));
        }
    }
}
