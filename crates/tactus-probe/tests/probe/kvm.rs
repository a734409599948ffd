//! Exits of a guest that KVM really runs: the count must match the guest's exits.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use crate::common::{PROBE, skipped};

/// A port without a device.
const PORT: u8 = 0xe0;
/// The port by which the guest ends its machine (QEMU's isa-debug-exit).
const END: u8 = 0xf4;

/// The first code of a PC: 64 KiB below 4 GiB, whose last 16 bytes are where the processor starts, in 16 bits. It
/// writes `times` bytes to a port, one by one, and ends.
fn rom(times: u32) -> Vec<u8> {
    let mut rom = vec![0; 0x1_0000];
    let mut code = vec![0x66, 0xb9]; // mov ecx, times
    code.extend(times.to_le_bytes());
    code.extend([0xe6, PORT, 0x66, 0x49, 0x75, 0xfa]); // again: out PORT, al; dec ecx; jnz again
    code.extend([0xe6, END, 0xf4]); // out END, al; hlt
    rom[..code.len()].copy_from_slice(&code);
    rom[0xfff0..0xfff3].copy_from_slice(&[0xe9, 0x0d, 0x00]); // jmp to the beginning
    rom
}

/// QEMU with such a guest, which has not begun yet. It is ended where this is dropped.
struct Guest(Child);

impl Guest {
    fn start(rom: &std::path::Path) -> Self {
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args([
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-S",
            "-qmp",
            "stdio",
        ]);
        qemu.args([
            "-machine",
            "q35,hpet=off",
            "-accel",
            "kvm",
            "-cpu",
            "host,-arch-capabilities",
            "-m",
            "64M",
        ]);
        qemu.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=1", "-bios"]).arg(rom);
        Self(qemu.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Asks its monitor, and returns the answer, which is a line.
    fn ask(&mut self, answers: &mut impl BufRead, command: &str) -> String {
        let stdin = self.0.stdin.as_mut().unwrap();
        writeln!(stdin, "{{\"execute\":\"{command}\"}}").unwrap();
        loop {
            let mut line = String::new();
            assert!(answers.read_line(&mut line).unwrap() > 0, "QEMU ended: {command}");
            if line.contains("\"return\"") || line.contains("\"error\"") {
                return line;
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The counts that the probe reports of a guest with this many writes; an error: why it cannot count.
fn counted(times: u32) -> Result<String, String> {
    let dir = std::env::temp_dir().join(format!("tactus-kvm-{}-{times}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join("rom.bin");
    fs::write(&path, rom(times)).unwrap();
    let mut guest = Guest::start(&path);
    let mut answers = BufReader::new(guest.0.stdout.take().unwrap());
    guest.ask(&mut answers, "qmp_capabilities");
    let cpus = guest.ask(&mut answers, "query-cpus-fast");
    fs::remove_dir_all(&dir).unwrap();
    let thread = cpus.split("\"thread-id\": ").nth(1).and_then(|rest| rest.split([',', '}']).next());
    let thread: u32 =
        thread.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("{cpus}"));
    let mut probe = Command::new(PROBE)
        .args(["exits", &format!("thread=0:{thread}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(probe.stdout.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    if let Some(why) = first.strip_prefix("refused ") {
        probe.wait().unwrap();
        return Err(why.trim().to_owned());
    }
    assert_eq!(first, "counting\n");
    guest.ask(&mut answers, "cont");
    // It ends its machine: after the byte that it writes for that, it does not come back.
    guest.0.wait().unwrap();
    drop(probe.stdin.take());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(probe.wait().unwrap().success(), "{rest}");
    Ok(rest)
}

/// The numbers of a line that begins so.
fn numbers(said: &str, beginning: &str) -> Option<Vec<u64>> {
    let line = said.lines().find_map(|line| line.strip_prefix(beginning))?;
    Some(line.split_ascii_whitespace().map(|word| word.parse().unwrap()).collect())
}

#[test]
fn each_port_write_of_a_guest_is_an_exit_to_user_space() {
    if fs::File::open("/dev/kvm").is_err() {
        return skipped("there is no /dev/kvm, or this is not root");
    }
    if !["/usr/bin", "/usr/local/bin"]
        .iter()
        .any(|dir| fs::exists(format!("{dir}/qemu-system-x86_64")).unwrap())
    {
        return skipped("there is no QEMU for x86-64");
    }
    for times in [1_000, 5_000] {
        let said = match counted(times) {
            Ok(said) => said,
            Err(why) => return skipped(&why),
        };
        if !said.lines().any(|line| line == "users") {
            return skipped("this kernel has no tracepoint kvm_userspace_exit");
        }
        let whole = numbers(&said, "counted ").unwrap()[0];
        // KVM_EXIT_IO.
        let io = numbers(&said, "user 0 2 ").unwrap_or_else(|| panic!("{said}"));
        let [count, ns, longest] = io[..] else { panic!("{said}") };
        assert_eq!(count, u64::from(times), "{said}");
        assert!(longest > 0 && longest <= ns && ns <= count * longest && ns <= whole, "{said}");
        // If the processor runs the guest itself, each of them also left the guest for that reason: VMX (30) or SVM
        // (0x7b).
        for reason in ["exit 0 1 30 ", "exit 0 2 123 "] {
            if let Some(left) = numbers(&said, reason) {
                assert_eq!(left[0], u64::from(times), "{said}");
                assert!(left[1] >= ns, "the time outside has that in user space in it: {said}");
            }
        }
    }
}
