//! Instructions whose time in cycles is known.
#![expect(unsafe_code, reason = "no safe code says which instructions are executed")]

use std::arch::asm;

/// Additions in one turn of the loop.
const UNROLLED: u64 = 64;

/// Executes about this many additions, each of which needs the result of the one before: one cycle each, on every
/// current processor. Returns the exact number.
pub fn additions(about: u64) -> u64 {
    let turns = (about / UNROLLED).max(1);
    let (mut sum, one) = (0_u64, 1_u64);
    for _ in 0..turns {
        // From a register rather than a constant: newer processors execute additions of constants while they rename
        // registers, in no time.
        // SAFETY: it changes the register that it is given, and flags.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            asm!(".rept 64", "add {sum}, {one}", ".endr", sum = inout(reg) sum, one = in(reg) one, options(nomem, nostack));
        }
        // SAFETY: it changes the register that it is given.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            asm!(".rept 64", "add {sum}, {sum}, {one}", ".endr", sum = inout(reg) sum, one = in(reg) one, options(nomem, nostack));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_executed_as_it_says() {
        assert_eq!((additions(0), additions(64), additions(1_000)), (64, 64, 960));
    }
}
