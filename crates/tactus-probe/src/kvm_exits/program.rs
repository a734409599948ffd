//! The two programs, as instructions. Both run in the thread of a virtual CPU, which alone writes its record. No memory
//! is shared, and a thread that moves to another CPU between exit and entry is still counted.

use super::record::{AT, ISA, LAST_REASON, SLOT, SLOT_WORDS, SLOTS, WORDS};
use crate::bpf::instruction::{EXIT, THREAD, TIME, add, call, code, copy, load, map_value, set, store, word};

/// The set of instructions of VMX, whose reasons are the lower half of a word with flags.
const VMX: i32 = 1;

/// A number as the operand of an instruction; 0 if it does not fit.
fn value(number: usize) -> i32 {
    i32::try_from(number).unwrap_or_default()
}

/// The beginning of both: register 6 has the arguments of the tracepoint, register 8 the address of the thread's
/// record. For other threads the program ends here.
fn find(map: i32, threads: &[u32]) -> Vec<u64> {
    let mut found = vec![copy(6, 1), call(THREAD), code(0xbc, 7, 0, 0, 0)];
    for (number, thread) in threads.iter().enumerate() {
        // Over the two of each thread that follows, and the end.
        let on = i16::try_from(2 * (threads.len() - 1 - number) + 2).unwrap_or_default();
        let thread = i32::try_from(*thread).unwrap_or_default();
        found.extend([set(8, value(number * WORDS * 8)), code(0x15, 7, 0, on, thread)]);
    }
    found.extend([set(0, 0), EXIT, map_value(1, map), 0, add(8, 1)]);
    found
}

/// The fields of a tracepoint with the reason and a second number.
#[derive(Clone, Copy, Debug)]
pub enum Says {
    /// `kvm_exit`: the reason, and the set of instructions that it is of.
    Exit { reason: i16, isa: i16 },
    /// `kvm_userspace_exit`: the reason, which is that of an earlier one where there is an error.
    ToUser { reason: i16, error: i16 },
}

/// KVM's number for an exit to user space for a signal, or because user space asked for it. It has the error EINTR, the
/// only error after which a guest continues.
pub const INTERRUPTED: usize = 10;

/// At `kvm_exit` or `kvm_userspace_exit`: when, and why.
pub fn left(map: i32, threads: &[u32], says: Says) -> Vec<u64> {
    let mut program = find(map, threads);
    let (Says::Exit { reason, isa: more } | Says::ToUser { reason, error: more }) = says;
    program.extend([
        call(TIME),
        store(8, 0, word(AT)),
        code(0x61, 2, 6, more, 0),
        store(8, 2, word(ISA)),
        code(0x61, 3, 6, reason, 0),
    ]);
    program.extend(match says {
        Says::Exit { .. } => [code(0x55, 2, 0, 1, VMX), code(0x57, 3, 0, 0, 0xffff)],
        Says::ToUser { .. } => [code(0x15, 2, 0, 1, 0), set(3, value(INTERRUPTED))],
    });
    program.extend([
        code(0xb5, 3, 0, 1, value(LAST_REASON)),
        set(3, value(LAST_REASON + 1)),
        store(8, 3, word(SLOT)),
        set(0, 0),
        EXIT,
    ]);
    program
}

/// At `kvm_entry`, or at `kvm_fpu` after user space: how long it was outside.
pub fn entered(map: i32, threads: &[u32]) -> Vec<u64> {
    let mut program = find(map, threads);
    let [count, ns, longest] = [SLOTS, SLOTS + 1, SLOTS + 2].map(word);
    program.extend([
        call(TIME),
        load(7, 8, word(AT)),
        code(0x15, 7, 0, 16, 0), // It was not seen to leave: to the end.
        code(0x1f, 0, 7, 0, 0),
        set(1, 0),
        store(8, 1, word(AT)),
        load(2, 8, word(SLOT)),
        code(0x25, 2, 0, 11, value(LAST_REASON + 1)), // No slot: to the end.
        code(0x27, 2, 0, 0, value(SLOT_WORDS * 8)),
        add(8, 2),
        load(1, 8, count),
        code(0x07, 1, 0, 0, 1),
        store(8, 1, count),
        load(1, 8, ns),
        add(1, 0),
        store(8, 1, ns),
        load(1, 8, longest),
        code(0x3d, 1, 0, 1, 0), // Unless one was as long,
        store(8, 0, longest),
        set(0, 0),
        EXIT,
    ]);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The targets of a program's jumps.
    fn jumps(program: &[u64]) -> Vec<(usize, usize)> {
        let jump = |(at, instruction): (usize, &u64)| {
            let bytes = instruction.to_ne_bytes();
            let on = i16::from_ne_bytes([bytes[2], bytes[3]]);
            let to = || at + 1 + usize::try_from(on).unwrap();
            [0x15, 0x55, 0x25, 0xb5, 0x3d].contains(&bytes[0]).then(|| (at, to()))
        };
        program.iter().enumerate().filter_map(jump).collect()
    }

    #[test]
    fn every_thread_finds_its_record_and_no_jump_leaves_the_program() {
        for threads in [&[7][..], &[7, 8, 9]] {
            let map = map_value(1, 3);
            let says = [Says::Exit { reason: 8, isa: 24 }, Says::ToUser { reason: 8, error: 12 }];
            for program in says.map(|says| left(3, threads, says)).into_iter().chain([entered(3, threads)]) {
                let found = program.iter().position(|instruction| *instruction == map).unwrap();
                let jumps = jumps(&program);
                assert!(jumps[..threads.len()].iter().all(|(_, to)| *to == found), "{jumps:?}");
                assert!(jumps.iter().all(|(_, to)| *to < program.len()), "{jumps:?}");
                assert_eq!(program.last(), Some(&EXIT));
            }
        }
    }

    #[test]
    fn what_was_not_seen_to_leave_and_what_has_no_slot_go_to_the_end() {
        let program = entered(3, &[7]);
        let end = program.len() - 2;
        assert_eq!(jumps(&program)[1..].iter().map(|(_, to)| *to).collect::<Vec<_>>(), [end, end, end]);
    }
}
