//! A check in words: what `tactus explain` and the book print.

use super::{Applies, Arch, Check, Reversible, SetBy};

impl Check {
    /// Everything about it beside id and title, by name.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let sources = self.sources.iter().map(ToString::to_string);
        let set: Vec<&str> = self.set.iter().map(|set| set_by(*set)).collect();
        let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        vec![
            ("severity", self.severity.to_string()),
            ("concerns", concerned(self)),
            ("set", or(&set.join(", "), "not by a setting")),
            ("reverted", taken_back(self.reversible).to_owned()),
            ("sources", sources.collect::<Vec<_>>().join("; ")),
            ("reads", named(self.reads)),
            ("expects", named(self.expected)),
            ("why", named(self.why)),
            ("fix", named(self.fix)),
            ("risk", named(&or(self.risk, "none known"))),
        ]
    }
}

/// The placeholders for CPUs in a text for any machine: in capitals, as in manuals.
fn named(text: &str) -> String {
    text.replace("{isolated}", "ISOLATED")
        .replace("{housekeeping}", "HOUSEKEEPING")
        .replace("{housekeeping_mask}", "HOUSEKEEPING_MASK")
}

fn concerned(check: &Check) -> String {
    let who: Vec<&str> = check
        .applies
        .iter()
        .map(|applies| match applies {
            Applies::Host => "hosts",
            Applies::Guest => "guests",
            Applies::Container => "containers",
            Applies::Hypervisor => "virtual machines, seen from their host",
        })
        .collect();
    let arch = match check.arch {
        Arch::Any => "",
        Arch::X86 => ", x86",
        Arch::Intel => ", Intel",
        Arch::Arm64 => ", 64-bit Arm",
    };
    let hardware = if check.hardware { "; unknown inside a virtual machine" } else { "" };
    format!("{}{arch}{hardware}", who.join(" and "))
}

const fn set_by(set: SetBy) -> &'static str {
    match set {
        SetBy::KernelCommandLine => "on the kernel's command line",
        SetBy::RunTime => "at run time",
        SetBy::Firmware => "in the firmware's setup",
        SetBy::Libvirt => "in the libvirt domain",
        SetBy::Qemu => "on QEMU's command line",
        SetBy::ModuleParameter => "as a module parameter",
        SetBy::Service => "by a service",
        SetBy::ContainerFlag => "by a flag of the container runtime",
        SetBy::Installation => "by another kernel or package",
        SetBy::Placement => "by where the work is placed",
        SetBy::Application => "in the application",
    }
}

const fn taken_back(reversible: Reversible) -> &'static str {
    match reversible {
        Reversible::Yes => "at run time",
        Reversible::Reboot => "by a reboot",
        Reversible::Restart => "by restarting the virtual machine or container",
        Reversible::Nothing => "nothing to revert",
    }
}

#[cfg(test)]
mod tests {
    use crate::all;

    #[test]
    fn no_text_of_a_check_has_a_raw_placeholder() {
        for (_, check) in all() {
            for (name, text) in check.fields() {
                for word in ["{isolated", "{housekeeping", "{cpu}"] {
                    assert!(!text.contains(word), "{}: {name} has {word}", check.id);
                }
            }
        }
    }
}
