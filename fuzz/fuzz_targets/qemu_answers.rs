//! What QEMU answers on its monitor, and what a guest's agent answers through libvirt: no bytes make the readers panic,
//! how they are cut changes nothing, and a guest that says nonsense is an error that names it.

#![cfg_attr(fuzzing, no_main)]

use std::io::{self, Read};

use libfuzzer_sys::fuzz_target;
use tactus_environment::kind::libvirt::agent::Agent;
use tactus_environment::kind::libvirt::virsh::Virsh;
use tactus_environment::kind::qemu::qmp::{Monitor, read_line, threads};
use tactus_model::plan;
use tactus_system::Memory;

/// How a call of the agent begins.
const CALL: [&str; 5] = ["virsh", "-q", "-c", "qemu:///system", "qemu-agent-command"];

fuzz_target!(|data: &[u8]| {
    let Some((cut, bytes)) = data.split_first() else { return };
    let whole = monitor(bytes);
    assert_eq!(monitor(Pieces(bytes, usize::from(*cut) + 1)), whole);
    let text = String::from_utf8_lossy(bytes);
    text.lines().for_each(|line| drop(read_line(line)));
    let machine = Memory::new().answer(&CALL, i32::from(cut % 4 == 3), &text, &text);
    let virsh = Virsh::of(&plan::Environment::default(), &machine).expect("this machine's libvirt");
    let agent = Agent::of(&virsh, "plc");
    for refusal in [agent.answers().err(), agent.script("true", &["x"]).err(), agent.ended(7).err()] {
        assert!(refusal.is_none_or(|error| !error.reason.is_empty()));
    }
    if let Ok(Some(end)) = agent.ended(7) {
        assert!(end.to_string().starts_with("it "), "{end}");
    }
});

/// The vCPUs' threads, as a monitor tells them that says this; or why it does not.
fn monitor(reader: impl Read) -> Result<Vec<(u32, u32)>, String> {
    let asked = Monitor::open(reader, io::sink()).and_then(|mut monitor| monitor.ask("query-cpus-fast"));
    let found = asked.map(|answer| threads(&answer)).map_err(|error| error.to_string());
    assert!(found.as_ref().map_or_else(|words| !words.is_empty(), |threads| threads.is_sorted()));
    found
}

/// Bytes that come in pieces.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(self.1);
        self.0.read(&mut buffer[..room])
    }
}
