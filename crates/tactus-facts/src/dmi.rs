//! Memory modules, from the firmware's tables (SMBIOS 3.7, 7.18, structure type 17), as dmidecode
//! reads them.

use std::fs;

use crate::read::{Collector, refused};

const TABLE: &str = "/sys/firmware/dmi/tables/DMI";
const MEMORY_DEVICE: u8 = 17;
const END: u8 = 127;

/// Keeps a reading for each module. A virtual machine often has no tables: then nothing is kept.
pub fn keep(it: &mut Collector) {
    match fs::read(TABLE) {
        Ok(bytes) => {
            for (n, text) in modules(&bytes).iter().enumerate() {
                it.facts.keep(format!("dmi:memory:{n}"), text.clone());
            }
        }
        Err(error) => {
            it.facts.0.insert("dmi:memory:0".into(), refused(&error));
        }
    }
}

/// `size=16384MB rated=3200 configured=2933` of each module that is plugged in; `?` for what the
/// firmware does not say.
fn modules(mut table: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while let [kind, length, ..] = table {
        let length = usize::from(*length);
        if length < 4 || *kind == END {
            break;
        }
        let Some(formatted) = table.get(..length) else { break };
        if *kind == MEMORY_DEVICE {
            found.extend(module(formatted));
        }
        // Texts follow, each with a zero at its end, and another zero after the last.
        let texts = &table[length..];
        let Some(end) = texts.windows(2).position(|pair| pair == [0, 0]) else { break };
        table = &texts[end + 2..];
    }
    found
}

fn module(bytes: &[u8]) -> Option<String> {
    let word = |at: usize| bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes);
    let long = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    let size = match word(0x0c)? {
        0 => return None,
        0xffff => "?".to_owned(),
        0x7fff => long(0x1c).map_or("?".into(), |mb| format!("{}MB", mb & 0x7fff_ffff)),
        kb if kb & 0x8000 != 0 => format!("{}kB", kb & 0x7fff),
        mb => format!("{mb}MB"),
    };
    // 0 is unknown, 0xffff says that the speed is in a longer field.
    let speed = |short: usize, extended: usize| match word(short) {
        None | Some(0) => "?".to_owned(),
        Some(0xffff) => long(extended).map_or("?".into(), |speed| speed.to_string()),
        Some(speed) => speed.to_string(),
    };
    Some(format!("size={size} rated={} configured={}", speed(0x15, 0x54), speed(0x20, 0x58)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(size: u16, rated: u16, configured: u16) -> Vec<u8> {
        let mut bytes = vec![0; 0x28];
        bytes[0] = MEMORY_DEVICE;
        bytes[1] = 0x28;
        bytes[0x0c..0x0e].copy_from_slice(&size.to_le_bytes());
        bytes[0x15..0x17].copy_from_slice(&rated.to_le_bytes());
        bytes[0x1c..0x20].copy_from_slice(&65536u32.to_le_bytes());
        bytes[0x20..0x22].copy_from_slice(&configured.to_le_bytes());
        bytes
    }

    #[test]
    fn modules_tell_rated_and_configured_speed() {
        let mut table = vec![0, 5, 0, 0, 9, b'v', b'e', b'n', 0, 0];
        table.extend(device(16384, 3200, 2933));
        table.extend(b"DIMM A\0\0");
        table.extend(device(0, 0, 0));
        table.extend([0, 0]);
        table.extend(device(0x7fff, 4800, 0));
        table.extend([0, 0, END, 4, 0, 0, 0, 0]);
        assert_eq!(
            modules(&table),
            ["size=16384MB rated=3200 configured=2933", "size=65536MB rated=4800 configured=?"]
        );
    }

    #[test]
    fn no_table_makes_the_reader_panic() {
        let whole = [device(16384, 3200, 2933), b"a\0\0".to_vec()].concat();
        for end in 0..whole.len() {
            let _ = modules(&whole[..end]);
        }
        for byte in 0..=255u8 {
            let _ = modules(&vec![byte; 300]);
        }
    }
}
