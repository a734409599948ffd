//! The kernel's command line, for GRUB.

use tactus_audit::{Arch, Subject};

use super::comment::{Marks, comment, header};
use super::{File, GenerateError, GenerateRequest, Generator, Output, Page, Placement, Purpose, placement};

/// The entry of the table.
pub static ENTRY: Generator = Generator {
    name: "grub",
    about: "The boot-time part of a profile as a drop-in of GRUB's configuration (/etc/default/grub.d, read by \
Debian and Ubuntu). Each parameter has its own line and its check. On a machine with grubby (Fedora, RHEL) it is a \
script for that. It contains only parameters for this processor. A contested parameter is a comment, with the reason.",
    purpose: Purpose::Machine,
    generate,
};

/// A parameter with its value, its check, and a caution.
struct Parameter {
    name: String,
    value: String,
    check: String,
    caution: String,
}

fn generate(request: &GenerateRequest<'_>) -> Result<Output, GenerateError> {
    placement::check(request.subject)?;
    let mut parameters: Vec<Parameter> = Vec::new();
    for (name, value, check) in request.kernel_parameters() {
        let caution = caution(name).to_owned();
        let new = Parameter { name: name.into(), value: value.into(), check: check.into(), caution };
        match parameters.iter_mut().find(|other| other.name == name) {
            Some(other) => *other = new,
            None => parameters.push(new),
        }
    }
    let (pages, notes) = pages(request)?;
    if !parameters.iter().any(|parameter| parameter.name == "hugepages") {
        parameters.extend(pages);
    }
    if parameters.is_empty() {
        return Err(GenerateError::Nothing { profile: request.profile.to_owned(), what: "a command line" });
    }
    let line = parameters.iter().map(Parameter::word).collect::<Vec<_>>().join(" ");
    let there = |program: &str| request.subject.facts.text(&format!("program:{program}")).is_some();
    let grubby = there("grubby") && !there("update-grub");
    let file = if grubby { with_grubby(request, &parameters) } else { drop_in(request, &parameters, &line) };
    Ok(Output { files: vec![file], notes })
}

impl Parameter {
    fn word(&self) -> String {
        if self.value.is_empty() { self.name.clone() } else { format!("{}={}", self.name, self.value) }
    }

    fn comment(&self, request: &GenerateRequest<'_>) -> String {
        let of = (request.says)(&self.check);
        comment("", &if self.caution.is_empty() { of } else { format!("{of} {}", self.caution) })
    }
}

const WITHHELD: &str = "\n# Not set, because each weakens a safety feature. Remove the # to set it, or generate\n# \
again with --with and the word before the colon.\n";

const VERIFY: &str = "After the reboot `cat /proc/cmdline /sys/devices/system/cpu/isolated` shows the parameters in \
effect; `dmesg` names unknown ones.";

fn drop_in(request: &GenerateRequest<'_>, parameters: &[Parameter], line: &str) -> File {
    let any = format!("With another boot loader, append this to the kernel's command line: {line}");
    let mut text = header(
        request,
        Marks::Hash,
        "grub",
        "put it in /etc/default/grub.d/50-tactus.cfg, run update-grub (or grub-mkconfig -o /boot/grub/grub.cfg), \
reboot",
        "remove it, run the same command, reboot",
        &[VERIFY, &any],
    );
    let entry = |word: &str| format!("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {}\"\n", escaped(word));
    for parameter in parameters {
        text += &format!("\n{}{}", parameter.comment(request), entry(&parameter.word()));
    }
    let contested = contested(request.subject, parameters);
    if !contested.is_empty() {
        text += "\n# Contested, and so not set. Measure first (tactus prove), then remove the #.\n";
    }
    for (words, check, reason) in contested {
        text += &format!("\n{}#{}", comment("", &format!("{check}: {reason}")), entry(words));
    }
    let withheld = request.withheld_parameters();
    if !withheld.is_empty() {
        text += WITHHELD;
    }
    for (word, check, reason) in withheld {
        text += &format!("\n{}#{}", comment("", &format!("{check}: {reason}")), entry(&word));
    }
    File {
        name: "50-tactus.cfg".into(),
        belongs: crate::transaction::own_files::GRUB.into(),
        mode: 0o644,
        text,
    }
}

fn with_grubby(request: &GenerateRequest<'_>, parameters: &[Parameter]) -> File {
    let mut text = "#!/bin/sh\n".to_owned();
    text += &header(
        request,
        Marks::Hash,
        "grub",
        "as root: ./tactus-grubby.sh install, then reboot",
        "as root: ./tactus-grubby.sh remove, then reboot. Former values of the same parameters are not restored",
        &[VERIFY],
    );
    text += "set -eu\narguments=\n";
    for parameter in parameters {
        text += &format!(
            "\n{}arguments=\"$arguments {}\"\n",
            parameter.comment(request),
            escaped(&parameter.word())
        );
    }
    let contested = contested(request.subject, parameters);
    if !contested.is_empty() {
        text += "\n# Contested, and so not set. Measure first (tactus prove), then remove the #.\n";
    }
    for (words, check, reason) in contested {
        text +=
            &format!("\n{}#arguments=\"$arguments {words}\"\n", comment("", &format!("{check}: {reason}")));
    }
    let withheld = request.withheld_parameters();
    if !withheld.is_empty() {
        text += WITHHELD;
    }
    for (word, check, reason) in withheld {
        let reason = comment("", &format!("{check}: {reason}"));
        text += &format!("\n{reason}#arguments=\"$arguments {}\"\n", escaped(&word));
    }
    text += "\ncase ${1:-} in\n  install) grubby --update-kernel=ALL --args=\"$arguments\" ;;\n  remove) grubby --update-kernel=ALL --remove-args=\"$arguments\" ;;\n  *) echo \"usage: $0 install|remove\" >&2; exit 2 ;;\nesac\n";
    File {
        name: "tactus-grubby.sh".into(),
        belongs: "anywhere: ./tactus-grubby.sh install".into(),
        mode: 0o755,
        text,
    }
}

/// A text between double quotes of a shell.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A caution beside the check's own words.
fn caution(name: &str) -> &'static str {
    match name {
        "nohz_full" => "The tick stops only while one thread runs; POSIX CPU timers keep it.",
        "tsc" => {
            "It turns off the kernel's check of the TSC: only for machines whose TSC is known to be good."
        }
        "intel_idle.max_cstate" => {
            "Without processor.max_cstate=1 acpi_idle takes over, with its deep states."
        }
        "default_hugepagesz" => "Pages of 2 MiB then exist only if you request them too.",
        _ => "",
    }
}

/// The guest's memory as huge pages, where there is to be a guest.
fn pages(request: &GenerateRequest<'_>) -> Result<(Vec<Parameter>, Vec<String>), GenerateError> {
    if request.profile != "realtime-virtual-host" && request.options.memory.is_none() {
        return Ok((Vec::new(), Vec::new()));
    }
    let (memory, page) = request.memory()?;
    if page == Page::Base {
        return Ok((Vec::new(), Vec::new()));
    }
    let count = memory.0 / page.bytes();
    let placement = Placement::of(request.subject, request.options.vcpus, 1)?;
    // Without a node the kernel spreads the pages over all of them.
    let (value, why) = match placement.node.filter(|_| placement.nodes > 1) {
        Some(node) if knows_nodes(request.subject) => (
            format!("{node}:{count}"),
            format!(
                "{memory} for the guest, on node {node} beside its CPUs; naming a node needs Linux 5.16."
            ),
        ),
        Some(node) => (
            (count * u64::try_from(placement.nodes).unwrap_or(1)).to_string(),
            format!(
                "{memory} for the guest on node {node}; this kernel spreads pages over all {} nodes, so it reserves \
that many times the number.",
                placement.nodes
            ),
        ),
        None => (count.to_string(), format!("{memory} for the guest.")),
    };
    let (check, word) = ("hugepages-1g", page.word());
    let parameter = |name: &str, value: &str, caution: &str| Parameter {
        name: name.into(),
        value: value.into(),
        check: check.into(),
        caution: caution.into(),
    };
    let said = request.options.memory.is_none().then(|| {
        format!("hugepages-1g: {memory} of memory are reserved for one guest; use --memory for more, or --pages 4K \
for none")
    });
    Ok((
        vec![
            parameter("default_hugepagesz", word, caution("default_hugepagesz")),
            parameter("hugepagesz", word, "It belongs to the number after it."),
            parameter("hugepages", &value, &why),
        ],
        said.into_iter().collect(),
    ))
}

/// Whether this kernel takes `hugepages=NODE:COUNT` (b5389086ad7b, Linux 5.16).
fn knows_nodes(subject: &Subject<'_>) -> bool {
    let release = subject.facts.text("uname:release").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor) >= (5, 16),
        // Unknown: kernels before it are old.
        _ => true,
    }
}

/// Parameters that help here and there and cost something everywhere: `(words, check, reason)`.
fn contested(subject: &Subject<'_>, there: &[Parameter]) -> Vec<(&'static str, &'static str, &'static str)> {
    let smt = subject.topology.cores.iter().any(|core| core.len() > 1);
    let (x86, intel) = (subject.is(Arch::X86), subject.is(Arch::Intel));
    let all: [(bool, &str, &str, &str); 7] = [
        (
            intel,
            "intel_idle.max_cstate=0 processor.max_cstate=1",
            "c-states",
            "no idle state below C1 on any CPU, at any time; costs heat and turbo. Use both words: with the first \
alone acpi_idle takes over, with its deep states",
        ),
        (
            x86 && !intel,
            "processor.max_cstate=1",
            "c-states",
            "no idle state below C1 on any CPU; costs heat and turbo",
        ),
        (
            x86,
            "idle=poll",
            "idle-poll",
            "no idle state at all. CPUs get hot, are throttled, lose turbo; in a guest nothing else runs on that CPU",
        ),
        (
            smt,
            "nosmt",
            "smt",
            "turns off every second hardware thread, so CPU numbers disappear: choose --isolate again. Turning SMT \
off in the firmware is better",
        ),
        (x86, "mce=ignore_ce", "mce-polling", "no polling for corrected errors. They are no longer reported"),
        (true, "audit=0", "audit", "no cost of auditing at each system call. Compliance rules may want it"),
        (
            true,
            "rcu_nocb_poll",
            "rcu-nocb-poll",
            "isolated CPUs wake no callback threads; the threads poll on the housekeeping CPUs instead",
        ),
    ];
    all.into_iter()
        .filter(|(applies, words, ..)| {
            let name = words.split(['=', ' ']).next().unwrap_or(words);
            *applies && !there.iter().any(|parameter| parameter.name == name)
        })
        .map(|(_, words, check, reason)| (words, check, reason))
        .collect()
}

#[cfg(test)]
mod tests {
    use tactus_system::{Invocation, Real, System};

    use super::super::testing::{Machine, shown, three};
    use super::super::{GenerateError, Output};
    use super::ENTRY;

    fn planned(machine: &Machine) -> Output {
        machine.clone().planned().generate(&ENTRY).unwrap()
    }

    #[test]
    fn the_drop_in_of_each_machine() {
        for (name, machine) in three() {
            insta::assert_snapshot!(format!("grub_{name}"), shown(&planned(&machine)));
        }
    }

    #[test]
    fn a_shell_reads_the_drop_in_as_one_command_line() {
        for (_, machine) in three() {
            let output = planned(&machine);
            let text = &output.files[0].text;
            let script =
                format!("set -eu\nGRUB_CMDLINE_LINUX=quiet\n{text}\nprintf %s \"$GRUB_CMDLINE_LINUX\"");
            // As update-grub reads it.
            let said = Real.run(&Invocation::new(["sh", "-c", &script])).unwrap();
            let line = said.text();
            assert!(said.success() && line.starts_with("quiet skew_tick=1 "), "{line}");
            // The header contains the same parameters for other boot loaders.
            let words: String = text.replace("\n# ", " ");
            assert!(words.contains(line.trim_start_matches("quiet ")), "{line}");
            for word in ["idle=poll", "mitigations", "nosoftlockup", "tsc=", "iommu=pt"] {
                assert!(!line.contains(word), "{word}: {line}");
            }
            assert!(text.contains("\n#GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX nosoftlockup\"\n"), "{text}");
        }
    }

    #[test]
    fn nothing_of_one_maker_is_written_for_another() {
        let [(_, intel), (_, amd), (_, arm)] = three();
        let text = |machine: &Machine| planned(machine).files.remove(0).text;
        assert!(text(&intel).contains("intel_pstate=disable") && !text(&intel).contains("amd_pstate"));
        assert!(!text(&amd).contains("intel_") && text(&amd).contains("amd_pstate=disable"));
        for word in ["intel_", "amd_", "tsc=", "mce=", "idle=poll", "processor."] {
            assert!(!text(&arm).contains(word), "{word}");
        }
    }

    #[test]
    fn pages_are_reserved_on_the_node_of_the_guest_where_the_kernel_can() {
        let [_, (_, amd), _] = three();
        let text = |release: &str| planned(&amd.clone().fact("uname:release", release)).files.remove(0).text;
        assert!(text("6.1.0-13-amd64").contains(" hugepages=1:4\""));
        assert!(text("5.15.0-1-generic").contains(" hugepages=8\""));
    }

    #[test]
    fn no_more_pages_are_reserved_than_the_machine_has_memory_for() {
        let [_, _, (_, arm)] = three();
        // A board of 768 MB.
        let board = arm.fact("/proc/meminfo", "MemTotal:         741404 kB\nMemFree: 1 kB\n");
        let of = |memory: Option<&str>| {
            let memory = memory.map(|memory| memory.parse().unwrap());
            let machine = board.clone().profile("realtime-virtual-host").options(|options| {
                options.page = Some(super::Page::M2);
                options.memory = memory;
            });
            machine.generate(&ENTRY)
        };
        // 320 MiB, less than half of it.
        assert!(of(None).unwrap().files[0].text.contains(" hugepages=160\""));
        let error = of(Some("4G")).unwrap_err();
        assert_eq!(error.to_string(), "4G of memory for a guest is more than this machine's 725M");
        assert!(error.hint().contains("--memory"));
    }

    #[test]
    fn machines_with_grubby_get_a_script_for_it() {
        let [(_, intel), ..] = three();
        let output = planned(&intel.fact("program:grubby", "/usr/sbin/grubby"));
        insta::assert_snapshot!("grub_grubby", shown(&output));
    }

    #[test]
    fn a_plan_without_boot_parameters_is_refused() {
        let [(_, machine), ..] = three();
        let machine = machine.options(|options| options.page = Some(super::Page::Base));
        assert!(matches!(machine.generate(&ENTRY).unwrap_err(), GenerateError::Nothing { .. }));
    }
}
