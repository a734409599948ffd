//! Numbers that identify a machine, hashed: a reader of bundles can see that two are of one machine, but does not see
//! the number.
//!
//! The hash of a random number of 122 bits (machine-id, the UUID of most firmware) reveals nothing more. A number
//! that can be guessed can be found by trying all. The serial number of a Raspberry Pi has 32 bits, and some makers
//! derive the UUID from a serial number or a network address. No secret can be mixed in: it would have to survive a
//! new installation of the system, as the mainboard's number does.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tactus_system::System;

/// tactus's own number. `systemd-id128 machine-id --app-specific=86acf32f-a21f-4ef1-9c2d-6c6cf9d0f2b4` gives what
/// [`installed`] does.
const APPLICATION: [u8; 16] = 0x86ac_f32f_a21f_4ef1_9c2d_6c6c_f9d0_f2b4_u128.to_be_bytes();

/// Placeholders that firmware reports when its maker has set no number.
const PLACEHOLDERS: [u128; 4] =
    [0, u128::MAX, 0x0300_0200_0400_0500_0006_0007_0008_0009, 0x1234_5678_1234_5678_90ab_cdde_efaa_bbcc];

/// The installed system, by machine-id(5). Machines that were cloned from one image share it, until somebody fixes that.
pub fn installed(system: &dyn System) -> Option<String> {
    let text = ["/etc/machine-id", "/var/lib/dbus/machine-id"].iter().find_map(|path| system.text(path))?;
    let id = number(text.trim())?;
    Some(specific(&id.to_be_bytes(), true))
}

/// The mainboard, as reported by firmware: the system's UUID of SMBIOS, or the serial number of a device tree. Only
/// root may read them. If the maker uses few such numbers, a reader of the bundle can find the number by trying.
pub fn hardware(system: &dyn System) -> Option<String> {
    let uuid = system.text("/sys/class/dmi/id/product_uuid");
    if let Some(id) = uuid.and_then(|text| number(&text.trim().replace('-', ""))) {
        return Some(specific(&id.to_be_bytes(), false));
    }
    let serial = system.text("/sys/firmware/devicetree/base/serial-number")?;
    let serial = serial.trim_matches(['\0', ' ', '\n']);
    let said = !serial.chars().all(|digit| digit == '0');
    said.then(|| specific(serial.as_bytes(), false))
}

/// A number of 32 digits in hex that tells something.
fn number(hex: &str) -> Option<u128> {
    let id = u128::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 32)?;
    (!PLACEHOLDERS.contains(&id)).then_some(id)
}

/// Half of the HMAC-SHA256 of our own number under a secret; as a UUID of version 4 where systemd's function makes one
/// (sd_id128_get_machine_app_specific(3)).
fn specific(secret: &[u8], as_uuid: bool) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    mac.update(&APPLICATION);
    let mut half: Vec<u8> = mac.finalize().into_bytes().iter().take(16).copied().collect();
    if as_uuid {
        half[6] = half[6] & 0x0f | 0x40;
        half[8] = half[8] & 0x3f | 0x80;
    }
    half.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    /// The number that systemd-id128 252 of Debian 12 printed for this one.
    #[test]
    fn the_installed_system_is_named_as_systemd_names_it() {
        let of = |text: &str| installed(&Memory::new().file("/etc/machine-id", text));
        assert_eq!(
            of("3d1219c7c4c5404aaa1f6d2a48adfda4\n").as_deref(),
            Some("7719fff8f99f45b3b8e7577b5d58bb70")
        );
        for nothing in ["", "uninitialized\n", &"0".repeat(32), &"g".repeat(32), "3d12", &"a".repeat(33)] {
            assert_eq!(of(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn hardware_is_what_firmware_says_unless_that_is_what_makers_leave_in() {
        let of = |path: &str, text: &str| hardware(&Memory::new().file(path, text));
        let uuid = "/sys/class/dmi/id/product_uuid";
        let real = of(uuid, "4c4c4544-0042-3510-8052-b4c04f4a3132\n").unwrap();
        assert_eq!(real.len(), 32);
        assert_eq!(of(uuid, "4C4C4544-0042-3510-8052-B4C04F4A3132"), Some(real), "letters of either case");
        assert_eq!(of(uuid, "03000200-0400-0500-0006-000700080009"), None);
        assert_eq!(of(uuid, "Not Settable"), None);
        let tree = "/sys/firmware/devicetree/base/serial-number";
        assert!(of(tree, "10000000abcdef01\0").is_some());
        assert_eq!(of(tree, "0000000000000000\0"), None);
        assert_eq!(of(tree, "\0"), None);
    }
}
