//! PCI devices that a guest has for a measurement to drive: emulated ones, and those of this machine.

use std::path::Path;

use tactus_model::device_card::PciAddress;
use tactus_model::plan;
use tactus_system::System;

use crate::support;
use crate::{OptionError, Usable};

/// Those that QEMU emulates, by its names.
const EMULATED: [&str; 1] = ["edu"];
/// More than any plan needs: each takes a slot of the guest's bus.
const MOST: usize = 8;
const HINT: &str =
    "a list of devices: \"edu\", which QEMU emulates, or addresses of this machine's, as [\"0000:03:00.0\"]";

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestPci {
    /// QEMU emulates it.
    Emulated(&'static str),
    /// This machine's, at that address.
    Own(PciAddress),
}

/// The devices that a plan names.
///
/// # Errors
/// A word that is not a device, too many devices, or one of this machine's twice.
pub fn named(spec: &plan::Environment) -> Result<Vec<GuestPci>, OptionError> {
    let wrong = |message: String| OptionError { key: "pci".into(), message, hint: HINT.into() };
    let words = support::list(spec, "pci", HINT)?;
    if words.len() > MOST {
        return Err(wrong(format!("{} devices are more than a guest may have ({MOST})", words.len())));
    }
    let mut devices = Vec::new();
    for word in words {
        let device = match EMULATED.into_iter().find(|known| *known == word) {
            Some(known) => GuestPci::Emulated(known),
            None => GuestPci::Own(word.parse().map_err(|why| wrong(format!("{word:?} is {why}")))?),
        };
        if matches!(device, GuestPci::Own(_)) && devices.contains(&device) {
            return Err(wrong(format!("the device {word} is named twice")));
        }
        devices.push(device);
    }
    Ok(devices)
}

/// Why a guest cannot have these devices here; `None` if it can.
pub fn obstacle(devices: &[GuestPci], system: &dyn System) -> Option<Usable> {
    let own = devices.iter().filter_map(|device| match device {
        GuestPci::Own(address) => Some(address),
        GuestPci::Emulated(_) => None,
    });
    for address in own {
        let at = |driver: &str| format!("/sys/bus/pci/{driver}/{address}");
        if !system.exists(Path::new(&at("devices"))) {
            return Some(Usable::No {
                reason: format!("this machine has no device at {address}"),
                remedy: "`lspci -D` lists its devices".into(),
            });
        }
        if !system.exists(Path::new(&at("drivers/vfio-pci"))) {
            return Some(Usable::No {
                reason: format!("the device at {address} is not bound to vfio-pci"),
                remedy: format!(
                    "take it from its driver: `modprobe vfio-pci`, and `driverctl --nosave set-override {address} vfio-pci`"
                ),
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tactus_system::Memory;

    use super::*;

    fn of(value: Value) -> Result<Vec<GuestPci>, OptionError> {
        let options = [("pci".to_owned(), value)].into_iter().collect();
        named(&plan::Environment { kind: "qemu".into(), options, ..plan::Environment::default() })
    }

    #[test]
    fn devices_are_those_that_qemu_emulates_and_addresses_and_nothing_that_would_be_an_option_of_its() {
        let own = |address: &str| GuestPci::Own(address.parse().unwrap());
        assert_eq!(
            of(json!(["edu", "0000:0A:00.1"])),
            Ok(vec![GuestPci::Emulated("edu"), own("0000:0a:00.1")])
        );
        assert_eq!(of(json!([])), Ok(Vec::new()));
        for wrong in [
            json!("edu"),
            json!([3]),
            json!(["edu,dma_mask=1"]),
            json!(["0000:03:00.0,x-no-mmap=on"]),
            json!(["e1000"]),
            json!(["0000:03:00.0", "0000:03:00.0"]),
            json!(["edu", "edu", "edu", "edu", "edu", "edu", "edu", "edu", "edu"]),
        ] {
            let error = of(wrong.clone()).expect_err(&wrong.to_string());
            assert!(error.key == "pci" && error.hint.contains("edu"), "{error:?}");
        }
    }

    #[test]
    fn a_device_of_this_machine_must_exist_and_be_bound_to_vfio() {
        let devices = of(json!(["edu", "0000:03:00.0"])).unwrap();
        let why = |machine: &Memory| match obstacle(&devices, machine) {
            Some(Usable::No { reason, remedy }) => format!("{reason}; {remedy}"),
            _ => String::new(),
        };
        let machine = Memory::new();
        assert!(why(&machine).contains("no device at 0000:03:00.0"));
        let machine = machine.file("/sys/bus/pci/devices/0000:03:00.0", "");
        assert!(why(&machine).contains("not bound to vfio-pci"), "{}", why(&machine));
        let machine = machine.file("/sys/bus/pci/drivers/vfio-pci/0000:03:00.0", "");
        assert_eq!(why(&machine), "");
    }
}
