//! A graphics unit within the processor.

use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "igpu",
    title: "integrated graphics share the last-level cache",
    sources: &[Source::Kernel("Documentation/core-api/real-time/kernel-configuration.rst")],
    applies: &[Applies::Host],
    severity: Severity::Minor,
    arch: Arch::X86,
    set: &[SetBy::Firmware],
    reversible: Reversible::Reboot,
    hardware: true,
    reads: "class, vendor and driver of the PCI devices on the root bus",
    expected: "no Intel display device on bus 0",
    why: "Intel's integrated graphics keep data in the last-level cache and read the screen from memory. Drawing \
takes cache ways, bandwidth and power budget from all cores. For AMD the facts do not show whether the graphics are \
integrated.",
    fix: "Disable the integrated graphics in the firmware's setup, or run without a desktop on it. If shareable_bits \
of resctrl shows its cache ways, keep real-time work to the others (resctrl-cat).",
    risk: "No screen without another graphics card; no hardware video decoding.",
    judge,
    changes: no_change,
}];

fn judge(subject: &Subject<'_>) -> Verdict {
    let mut devices = 0;
    let (mut found, mut radeon) = (None, None);
    for (name, reading) in subject.facts.under("pci:") {
        let (Some(address), Reading::Text(text)) = (name.strip_prefix("pci:"), reading) else { continue };
        devices += 1;
        let mut fields = text.split_whitespace();
        let (class, ids, driver) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""), fields.next());
        let on_root_bus = address.split(':').nth(1) == Some("00");
        let display = class.trim_start_matches("0x").starts_with("03");
        if on_root_bus && display && ids.starts_with("8086:") {
            found = Some((address, text, driver.unwrap_or("-")));
        }
        // Those within a processor lie behind a bridge, as cards do.
        if display && ids.starts_with("1002:") && subject.vendor == "AuthenticAMD" {
            radeon = Some((address, text));
        }
    }
    if devices == 0 {
        return Err(Judgement::unreadable("these facts list no PCI devices"));
    }
    if let (None, Some((address, text))) = (found, radeon) {
        let address: String = address.chars().take(20).collect();
        let said = format!(
            "AMD graphics at {address}: if integrated they share memory and perhaps the cache; on a card they do \
not. This check knows only Intel's"
        );
        let text: String = text.chars().take(80).collect();
        return Err(Judgement::unknowable(said).read(format!("pci:{address}"), text));
    }
    Ok(match found {
        None => Judgement::ok("there is no Intel graphics unit on the root bus"),
        Some((address, text, driver)) => {
            let address: String = address.chars().take(20).collect();
            let driver: String = driver.chars().take(20).collect();
            let said = match driver.as_str() {
                "-" => format!("the integrated graphics at {address} is on, without a driver"),
                driver => format!("the integrated graphics at {address} is on (driver {driver})"),
            };
            Judgement::finding(said).read(format!("pci:{address}"), text.chars().take(80).collect::<String>())
        }
    })
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use crate::testing::{HOSTILE, amd, arm, blank, guest, intel};

    const BRIDGE: (&str, &str) = ("pci:0000:00:00.0", "0x060000 8086:3e30 - -1 -");

    #[test]
    fn only_graphics_of_the_processor_itself_counts() {
        let with = |address: &str, text: &str| intel(&[BRIDGE, (address, text)]);
        let inside = with("pci:0000:00:02.0", "0x030000 8086:3e98 i915 -1 0");
        assert_eq!(inside.said("igpu"), "the integrated graphics at 0000:00:02.0 is on (driver i915)");
        assert_eq!(with("pci:0000:01:00.0", "0x030000 10de:1eb8 nvidia 0 1").state("igpu"), State::Ok);
        assert_eq!(with("pci:0000:04:00.0", "0x030000 1a03:2000 ast 0 -").state("igpu"), State::Ok);
        assert_eq!(with("pci:0000:00:1f.3", "0x040300 8086:a348 snd 0 -").state("igpu"), State::Ok);
    }

    #[test]
    fn amd_graphics_may_be_within_the_processor() {
        let radeon = ("pci:0000:0a:00.0", "0x030000 1002:164e amdgpu -1 9");
        assert_eq!(amd(&[BRIDGE, radeon]).state("igpu"), State::Unknowable);
        assert!(amd(&[BRIDGE, radeon]).said("igpu").starts_with("AMD graphics at 0000:0a:00.0"));
        assert_eq!(intel(&[BRIDGE, radeon]).state("igpu"), State::Ok, "a card");
        let none = amd(&[BRIDGE, ("pci:0000:04:00.0", "0x030000 1a03:2000 ast 0 -")]);
        assert_eq!(none.said("igpu"), "there is no Intel graphics unit on the root bus");
    }

    #[test]
    fn a_list_of_devices_must_be_there() {
        assert_eq!(intel(&[]).state("igpu"), State::Unreadable);
        assert_eq!(arm(&[BRIDGE]).state("igpu"), State::NotApplicable);
        assert_eq!(guest(&[BRIDGE]).role(Role::Host).state("igpu"), State::Unknowable);
        assert_eq!(blank(&[BRIDGE]).state("igpu"), State::NotApplicable, "no processor is known");
        assert!(
            HOSTILE.iter().all(|text| intel(&[("pci:", text), ("pci:x", text)]).state("igpu") == State::Ok)
        );
    }
}
