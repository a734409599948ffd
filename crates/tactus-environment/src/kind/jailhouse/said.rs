//! The meaning of console lines that are not frames: registers of a crash, a kernel that has panicked, a kernel that
//! begins. Pure.

/// The last line of a kernel's panic. Its cell stays "running".
const PANICKED: &str = "---[ end Kernel panic";
/// The first words of a cell that is started anew, or of its kernel.
const BEGINS: [&str; 2] = ["Started cell", "Booting Linux"];

/// The state of the inmate's kernel by a line: `true`, it has panicked; `false`, one begins; `None` otherwise.
pub fn panicked(line: &str) -> Option<bool> {
    if line.contains(PANICKED) {
        return Some(true);
    }
    BEGINS.iter().any(|begins| line.contains(begins)).then_some(false)
}

/// Whether a line lists registers, as the hypervisor does of a CPU that it parks (12 lines on arm64): they would push
/// the cause out of what is quoted.
pub fn lists_registers(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = |word: &str| {
        word.strip_suffix(':')
            .is_some_and(|name| name.len() <= 6 && name.chars().all(|c| c.is_ascii_alphanumeric()))
    };
    let value = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        (4..=16).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_hexdigit())
    };
    let pairs = words.windows(2).filter(|pair| name(pair[0]) && value(pair[1])).count();
    words.first().is_some_and(|word| name(word)) && (pairs > 1 || (pairs == 1 && words.len() == 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UART: &str = include_str!("../../../tests/fixtures/jailhouse/uart-hypervisor-and-inmates.txt");

    #[test]
    fn of_a_real_crash_the_registers_are_left_out_and_the_cause_stays() {
        let crash = UART.lines().skip_while(|line| !line.starts_with("Unhandled data read"));
        let crash: Vec<&str> =
            crash.take_while(|line| !line.starts_with("Cell ") || line.contains("before")).collect();
        let left: Vec<&str> =
            crash.iter().copied().filter(|line| !line.is_empty() && !lists_registers(line)).collect();
        assert_eq!(
            left,
            [
                "Unhandled data read at 0x50000000(4)",
                "FATAL: unhandled trap (exception class 0x24)",
                "Cell state before exception:",
                "Parking CPU 1 (Cell: \"inmate-demo\")"
            ]
        );
        let others = UART.lines().filter(|line| lists_registers(line)).count();
        assert_eq!(others % 12, 0, "nothing but the dumps of crashes is taken for registers");
    }

    #[test]
    fn those_of_an_x86_processor_are_registers_too() {
        for line in [
            "RIP: 0x00000000000f0040 RSP: 0x0000000000000000 FLAGS: 2",
            "RAX: 0x0000000000000000 RBX: 0x0000000000000000 RCX: 0x0000000000000000",
            "EFER: 0x0000000000000500",
        ] {
            assert!(lists_registers(line), "{line}");
        }
        for line in
            ["FATAL: Unhandled Page Fault", "CPU: 0 PID: 1 Comm: init Not tainted 6.1.0", "", "Timer fired:"]
        {
            assert!(!lists_registers(line), "{line}");
        }
    }

    #[test]
    fn a_panic_is_over_when_a_cell_or_a_kernel_begins() {
        let end =
            "[    2.1] ---[ end Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b ]---";
        assert_eq!(panicked(end), Some(true));
        assert_eq!(panicked("Started cell \"linux-demo\""), Some(false));
        assert_eq!(panicked("[    0.000000] Booting Linux on physical CPU 0x0000000002"), Some(false));
        assert_eq!(
            panicked("[    2.0] Kernel panic - not syncing: Attempted to kill init!"),
            None,
            "its trace follows"
        );
    }
}
