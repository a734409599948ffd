//! Moves the interface at the end of a path to an environment that makes its network namespace itself.

use tactus_system::{Invocation, System};

use super::namespace::{PATIENCE, enter, run};
use crate::StartError;
use crate::attachment::Attachment;
use crate::support::cannot;

/// The part of the address that is the network's, as the paths have it.
const PREFIX: u8 = 30;

/// Moves the interface with the address of a place into the network namespace of a process. Moving removes the
/// address, so it is set again. The interface ends with the namespace, except that a NIC returns to the machine.
///
/// # Errors
/// When the interface does not exist, or the kernel does not move it, in the words of ip(8).
pub fn hand_over(place: &Attachment, process: u32, system: &dyn System) -> Result<(), StartError> {
    let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let asked = words(format!("ip -oneline address show to {}", place.address));
    let said = system.run(&Invocation::new([enter(place.holder), asked].concat()).within(PATIENCE));
    let said = said.map_err(|error| cannot("the interface of the path was not found", error))?;
    let Some(name) = interface(&said.text()) else {
        let why = format!("none has the address {}: {}", place.address, said.words());
        return Err(cannot("the interface of the path was not found", why));
    };
    run(system, enter(place.holder), &words(format!("ip link set dev {name} netns {process}")))?;
    let there = |text: String| run(system, enter(process), &words(text));
    there(format!("ip address add {}/{PREFIX} dev {name}", place.address))?;
    there(format!("ip link set dev {name} up"))
}

/// The name in a line of `ip -oneline address`: `2: eth0    inet 198.18.0.1/30 ...`, `3: eth0@if2    inet ...`.
fn interface(said: &str) -> Option<String> {
    let name = said.lines().next()?.split_ascii_whitespace().nth(1)?;
    let name = name.split('@').next()?.trim_end_matches(':');
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::super::steps::{FAR, NEAR};
    use super::*;

    const PLACE: Attachment = Attachment { holder: 11, address: NEAR, other: FAR, nic: None };

    fn asks(machine: Memory, code: i32, stdout: &str, stderr: &str) -> Memory {
        let words = ["nsenter", "--net=/proc/11/ns/net", "--", "ip", "-oneline"];
        machine.answer(&words, code, stdout, stderr)
    }

    #[test]
    fn the_interface_that_has_the_address_is_moved_and_given_it_again() {
        let machine = asks(
            Memory::new(),
            0,
            "2: eth0    inet 198.18.0.1/30 scope global eth0\\ valid_lft forever\n",
            "",
        )
        .answer(&["nsenter", "--net=/proc/11/ns/net", "--", "ip", "link"], 0, "", "")
        .answer(&["nsenter", "--net=/proc/77/ns/net", "--", "ip"], 0, "", "");
        assert_eq!(hand_over(&PLACE, 77, &machine), Ok(()));
        let gone = asks(Memory::new(), 0, "", "");
        let why = hand_over(&PLACE, 77, &gone).unwrap_err();
        assert!(why.reason.contains("none has the address 198.18.0.1"), "{why}");
        let refused = asks(Memory::new(), 0, "2: eth0    inet 198.18.0.1/30\n", "").answer(
            &["nsenter", "--net=/proc/11/ns/net", "--", "ip", "link"],
            2,
            "",
            "RTNETLINK answers: Invalid argument\n",
        );
        let why = hand_over(&PLACE, 77, &refused).unwrap_err();
        assert!(why.reason.contains("RTNETLINK answers: Invalid argument"), "{why}");
    }

    #[test]
    fn an_interface_is_named_without_its_other_end() {
        assert_eq!(interface("3: eth0@if2    inet 198.18.0.1/30\n").as_deref(), Some("eth0"));
        assert_eq!(interface("2: ens1:    inet\n").as_deref(), Some("ens1"));
        for nothing in ["", "\n", "2:", "2: @if3"] {
            assert_eq!(interface(nothing), None, "{nothing:?}");
        }
    }
}
