//! TuneD: a profile of our own on top of one of its four, and that one's variables.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use tactus_audit::guard::interrupt;
use tactus_model::change::{Change, Target};

use super::comment::{Marks, comment, header};
use super::{File, GenerateError, GenerateRequest, Generator, Output, Purpose, placement};
use crate::plan::{Withheld, goes_with_driver};
use crate::profile;

/// The entry of the table.
pub static ENTRY: Generator = Generator {
    name: "tuned",
    about: "A TuneD profile, tactus-PROFILE, that includes TuneD's own profile of that name and adds the other \
settings of the plan. It comes with the variables file of TuneD's profile, which names the isolated CPUs. Without \
that file TuneD isolates all but one hardware thread of each socket, including halves of cores.",
    purpose: Purpose::Machine,
    generate,
};

/// Sections of a profile, each with its lines: the check, and the line.
type Sections = BTreeMap<&'static str, Vec<(String, String)>>;

fn generate(request: &GenerateRequest<'_>) -> Result<Output, GenerateError> {
    placement::check(request.subject)?;
    let known = profile::PROFILES.iter().find(|known| known.name == request.profile);
    let stock = known.ok_or_else(|| GenerateError::UnknownProfile(request.profile.to_owned()))?;
    let own = stock.changes(request.subject);
    let values: HashSet<(&Target, &str)> =
        own.iter().map(|change| (&change.target, change.then.as_str())).collect();
    let adds = |change: &&Change| !values.contains(&(&change.target, change.then.as_str()));
    let lasts = |change: &&Change| !is_default(change) && !goes_with_driver(change, request.changes.iter());
    let (mut sections, mut notes) = sections(request.changes.iter().filter(adds).filter(lasts));
    let own: HashSet<&Target> = own.iter().map(|change| &change.target).collect();
    keep_guards(request.withheld, &own, &mut sections, &mut notes);
    leave_out_orders(&mut sections, &mut notes);
    let name = format!("tactus-{}", stock.name);
    let where_ = "If TuneD is 2.24 or newer, /etc/tuned/profiles may hold the profile instead of /etc/tuned.";
    let mut text = header(
        request,
        Marks::Hash,
        "tuned",
        &format!(
            "put the directory {name} and the variables file in /etc/tuned, run tuned-adm profile {name}, reboot; \
then tuned-adm verify"
        ),
        "tuned-adm profile with the former profile (tuned-adm active shows it now), remove both, reboot",
        &[
            where_,
            "TuneD resets network queues and moves threads when it applies this: do not apply it while real-time \
work runs.",
        ],
    );
    let _ = write!(
        text,
        "\n[main]\nsummary={}, and what tactus adds to {}\ninclude={}\n",
        stock.summary, stock.name, stock.name
    );
    for (section, lines) in sections {
        let _ = write!(text, "\n[{section}]\n");
        let mut last = "";
        for (check, line) in &lines {
            if check != last {
                let guard = check.strip_prefix(GUARD);
                text += &comment("", &guard.map_or_else(|| (request.says)(check), str::to_owned));
            }
            last = check;
            text += line;
            text.push('\n');
        }
    }
    let variables = format!("{}-variables.conf", stock.name);
    Ok(Output {
        files: vec![
            File {
                name: format!("{name}/tuned.conf"),
                belongs: format!("/etc/tuned/{name}/tuned.conf"),
                mode: 0o644,
                text,
            },
            File {
                belongs: format!("/etc/tuned/{variables}"),
                mode: 0o644,
                text: variables_of(request, stock.name, &variables),
                name: variables,
            },
        ],
        notes,
    })
}

fn variables_of(request: &GenerateRequest<'_>, stock: &str, name: &str) -> String {
    let isolated = request.subject.isolated();
    let mut text = header(
        request,
        Marks::Hash,
        "tuned",
        &format!("in place of /etc/tuned/{name}, which is part of TuneD's profile"),
        "that file of the package",
        &[],
    );
    text.push('\n');
    text += &comment(
        "",
        "isolcpus, nohz-full: whole cores. By default TuneD keeps one hardware thread of each socket and isolates \
its sibling.",
    );
    let _ = writeln!(text, "isolated_cores={isolated}");
    if stock == "cpu-partitioning" {
        text += &comment(
            "",
            "isolcpus: also not balanced. Remove the # if every thread on these CPUs is pinned; others pile up on \
one CPU.",
        );
        let _ = writeln!(text, "#no_balance_cores={isolated}");
    } else {
        text += &comment(
            "",
            "managed-irq: managed queue interrupts stay off the isolated CPUs, if a housekeeping CPU is in their \
mask. Linux 5.6 or newer.",
        );
        text += "isolate_managed_irq=Y\n";
    }
    text
}

/// The beginning of a line, in place of a check, that keeps a guard which TuneD's profile takes away.
const GUARD: &str = "guard:";

/// Lines against what TuneD's own profile would weaken: it is included, and what comes later wins.
fn keep_guards(
    withheld: &[Withheld],
    own: &HashSet<&Target>,
    sections: &mut Sections,
    notes: &mut Vec<String>,
) {
    let mut seen = HashSet::new();
    for one in withheld.iter().filter(|one| own.contains(&one.change.target)) {
        let now = one.change.now.as_deref().unwrap_or_default();
        let (section, line) = match &one.change.target {
            Target::File { path, .. } if path.starts_with("/proc/sys/") => {
                ("sysctl", format!("{}={now}", path.trim_start_matches("/proc/sys/").replace('/', ".")))
            }
            Target::File { .. } if interrupt(&one.change).is_some() => {
                ("scheduler", "drop=isolated_cores".to_owned())
            }
            // By the same words as TuneD's profile.
            Target::File { path, .. } if path.starts_with("/sys/devices/system/machinecheck/") => {
                let name = path.rsplit('/').next().unwrap_or_default();
                ("sysfs", format!("/sys/devices/system/machinecheck/machinecheck*/{name}={now}"))
            }
            Target::File { path, .. } => ("sysfs", format!("{path}={now}")),
            Target::Kernel { parameter } => {
                let value =
                    if one.change.then.is_empty() { String::new() } else { format!("={}", one.change.then) };
                ("bootloader", format!("cmdline_zz_tactus_{parameter}=-{parameter}{value}"))
            }
            // TuneD's script writes /etc/modprobe.d/kvm.rt.tuned.conf, and this is read after it.
            Target::Module { module, parameter } => {
                notes.push(format!(
                    "{parameter} keeps the kernel's value, against TuneD's own profile: tuned-adm verify reports \
that as wrong"
                ));
                ("modules", format!("{module}={parameter}=auto"))
            }
            _ => continue,
        };
        if !seen.insert(line.clone()) {
            continue;
        }
        let why = format!(
            "{GUARD}{}: TuneD's own profile weakens {}: {}. This line keeps it; remove it to use TuneD's value.",
            one.change.check, one.guard, one.gives_up
        );
        sections.entry(section).or_default().push((why, line));
    }
}

/// Leaves out lines that are more than a value. Kept values come from facts, and recorded facts are not trusted. A
/// value of two lines could be another section, with a script that TuneD runs as root; and TuneD takes
/// `${f:exec:...}` for a command anywhere.
fn leave_out_orders(sections: &mut Sections, notes: &mut Vec<String>) {
    let is_value =
        |line: &str| line.chars().all(|c| matches!(c, ' '..='~') && !"$`\"'\\#;|&<>{}".contains(c));
    let mut left_out: Vec<String> = Vec::new();
    for lines in sections.values_mut() {
        lines.retain(|(check, line)| {
            let stays = is_value(line);
            if !stays {
                left_out.push(
                    check
                        .strip_prefix(GUARD)
                        .unwrap_or(check)
                        .split(':')
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                );
            }
            stays
        });
    }
    sections.retain(|_, lines| !lines.is_empty());
    if !left_out.is_empty() {
        notes.push(format!(
            "left out, because the facts contain an invalid value of these settings: {}",
            left_out.join(", ")
        ));
    }
}

/// Whether KVM makes this setting by itself if the processor can.
fn is_default(change: &Change) -> bool {
    matches!(change.target, Target::Module { .. }) && change.check == "virt-hw-assists" && change.holds()
}

/// Sorts changes into TuneD's sections; the sentences name the changes that TuneD cannot make.
fn sections<'a>(changes: impl Iterator<Item = &'a Change>) -> (Sections, Vec<String>) {
    let mut sections = Sections::new();
    let mut modules: BTreeMap<&str, (String, Vec<String>)> = BTreeMap::new();
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    let mut add = |section, change: &Change, line: String| {
        sections.entry(section).or_default().push((change.check.clone(), line));
    };
    for change in changes {
        let then = &change.then;
        match &change.target {
            Target::File { path, .. } if path.starts_with("/proc/sys/") => {
                let name = path.trim_start_matches("/proc/sys/").replace('/', ".");
                add("sysctl", change, format!("{name}={then}"));
            }
            Target::File { path, .. } if path.starts_with("/sys/") => {
                add("sysfs", change, format!("{path}={then}"));
            }
            Target::Kernel { parameter } => {
                let word = if then.is_empty() { parameter.clone() } else { format!("{parameter}={then}") };
                let name: String =
                    parameter.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
                add("bootloader", change, format!("cmdline_tactus_{name}=+{word}"));
            }
            Target::Module { module, parameter } => {
                let entry = modules.entry(module).or_insert_with(|| (change.check.clone(), Vec::new()));
                entry.1.push(format!("{parameter}={then}"));
            }
            Target::Service { unit } => {
                let name = unit.trim_end_matches(".service");
                let what = if then == "active" { "start,enable" } else { "stop,disable" };
                add("service", change, format!("service.{name}={what}"));
            }
            Target::DropIn { unit, key, .. } if unit == "system.conf" && key == "CPUAffinity" => {
                add("systemd", change, format!("cpu_affinity={then}"));
            }
            Target::File { .. } => *left.entry("interrupts").or_default() += 1,
            Target::Scheduling(_) | Target::Affinity(_) => *left.entry("threads").or_default() += 1,
            Target::DropIn { .. } => *left.entry("services' drop-ins").or_default() += 1,
        }
    }
    for (module, (check, options)) in modules {
        sections.entry("modules").or_default().push((check, format!("{module}={}", options.join(" "))));
    }
    let notes = left
        .into_iter()
        .map(|(what, count)| {
            format!("{count} settings of {what} are not in the profile: TuneD sets them in another way, or not at \
all (see `tactus tune plan`)")
        })
        .collect();
    (sections, notes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tactus_model::change::{Form, Target};

    use super::super::GenerateError;
    use super::super::testing::{Machine, shown, three};
    use super::ENTRY;
    use crate::cpu_time::cpu_time;
    use crate::plan::{Choice, Plan};

    fn planned() -> Machine {
        let [(_, machine), ..] = three();
        let file = |path: &str| Target::File { path: path.into(), form: Form::Plain };
        machine
            .change(
                "thp",
                Target::File {
                    path: "/sys/kernel/mm/transparent_hugepage/enabled".into(),
                    form: Form::Choice,
                },
                "never",
            )
            .change("compaction", file("/proc/sys/vm/compaction_proactiveness"), "0")
            .change("rcu-nocb-poll", Target::Kernel { parameter: "rcu_nocb_poll".into() }, "")
            .change("isolcpus", Target::Kernel { parameter: "isolcpus".into() }, "managed_irq,domain,2-7")
            .change("ple", Target::Module { module: "kvm_intel".into(), parameter: "ple_gap".into() }, "0")
            .change("posted-timer", Target::Module { module: "kvm_intel".into(), parameter: "x".into() }, "Y")
            .change("stalld", Target::Service { unit: "stalld.service".into() }, "active")
            .change("irq-affinity", file("/proc/irq/5/smp_affinity_list"), "0-1")
    }

    #[test]
    fn the_profile_holds_what_tuneds_own_does_not() {
        let output = planned().generate(&ENTRY).unwrap();
        insta::assert_snapshot!("tuned_intel", shown(&output));
        assert!(!output.files[0].text.contains("isolcpus=managed_irq"), "TuneD's profile has it already");
    }

    #[test]
    fn each_profile_has_its_variables() {
        for stock in crate::profile::PROFILES {
            let output = planned().profile(stock.name).generate(&ENTRY).unwrap();
            assert_eq!(output.files[1].name, format!("{}-variables.conf", stock.name));
            assert!(output.files[1].text.contains("\nisolated_cores=2-7\n"));
            let managed = output.files[1].text.contains("\nisolate_managed_irq=Y\n");
            assert_eq!(managed, stock.name != "cpu-partitioning");
        }
        let refusal = planned().profile("balanced").generate(&ENTRY).unwrap_err();
        assert_eq!(refusal, GenerateError::UnknownProfile("balanced".into()));
    }

    #[test]
    fn what_the_plan_withholds_tuneds_own_profile_does_not_set_either() {
        let [(_, machine), ..] = three();
        let mut machine = machine
            .fact("/proc/sys/kernel/sched_rt_runtime_us", "950000")
            .fact("/proc/sys/kernel/nmi_watchdog", "1")
            .fact("/sys/devices/system/machinecheck/machinecheck0/ignore_ce", "0")
            .fact("/sys/module/kvm/parameters/nx_huge_pages", "Y")
            .fact("/proc/irq/9/smp_affinity_list", "5");
        let profile = crate::profile::find("realtime-virtual-host").unwrap();
        let plan = machine.with(|subject| Plan::new(subject, profile, &Choice::default()));
        machine.changes = plan.entries.into_iter().map(|step| step.change).collect();
        machine.withheld = plan.withheld;
        let output = machine.generate(&ENTRY).unwrap();
        let text = &output.files[0].text;
        for line in [
            "kernel.sched_rt_runtime_us=950000",
            "kernel.nmi_watchdog=1",
            "/sys/devices/system/machinecheck/machinecheck*/ignore_ce=0",
            "cmdline_zz_tactus_nosoftlockup=-nosoftlockup",
            "cmdline_zz_tactus_tsc=-tsc=reliable",
            "kvm=nx_huge_pages=auto",
            "drop=isolated_cores",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert!(output.notes.iter().any(|note| note.contains("nx_huge_pages")), "{:?}", output.notes);
    }

    #[test]
    fn what_recorded_facts_say_is_a_value_in_tuneds_file_or_is_left_out() {
        let hostile = [
            "950000\n[script]\nscript=/tmp/x.sh",
            "950000${f:exec:/tmp/x}",
            "950000\r[script]",
            "950000\u{85}x",
            "950000 # x",
            "\"",
        ];
        for words in hostile {
            let [(_, machine), ..] = three();
            let mut machine = machine
                .fact("/proc/sys/kernel/sched_rt_runtime_us", words)
                .fact("/proc/sys/kernel/nmi_watchdog", "1");
            let profile = crate::profile::find("realtime-virtual-host").unwrap();
            let plan = machine.with(|subject| Plan::new(subject, profile, &Choice::default()));
            machine.changes = plan.entries.into_iter().map(|step| step.change).collect();
            machine.withheld = plan.withheld;
            let output = machine.generate(&ENTRY).unwrap();
            let text = &output.files[0].text;
            let said = |line: &str| !line.starts_with('#') && line.contains("sched_rt_runtime_us");
            assert!(!text.lines().any(said) && !text.contains("[script]"), "{words:?}: {text}");
            assert!(text.contains("\nkernel.nmi_watchdog=1\n"), "what is a value stays: {text}");
            assert!(output.notes.iter().any(|note| note.starts_with("left out")), "{:?}", output.notes);
        }
    }

    /// The shortest of three times in which a machine of `interrupts` interrupts is planned and generated for.
    fn time(interrupts: u32) -> Duration {
        let [(_, machine), ..] = three();
        let machine = (0..interrupts).fold(machine, |machine, irq| {
            machine
                .fact(&format!("interrupts:{irq}"), &format!("{irq}\t0:1\tIO-APIC {irq}-edge eth{irq}"))
                .fact(&format!("/proc/irq/{irq}/smp_affinity_list"), "0-7")
        });
        let mut machine = machine;
        let profile = crate::profile::find("realtime-virtual-host").unwrap();
        cpu_time(|| {
            let plan = machine.with(|subject| Plan::new(subject, profile, &Choice::default()));
            assert!(plan.entries.len() + plan.withheld.len() > interrupts as usize);
            machine.changes = plan.entries.into_iter().map(|step| step.change).collect();
            machine.withheld = plan.withheld;
            machine.generate(&ENTRY).unwrap();
        })
    }

    #[test]
    fn a_machine_of_ten_times_the_interrupts_takes_ten_times_as_long_and_not_a_hundred() {
        let (few, many) = (time(3_000), time(30_000));
        assert!(many < few * 40, "{few:?}, {many:?}");
    }

    #[test]
    fn nothing_of_a_driver_that_the_next_boot_does_not_have_is_in_the_profile() {
        let clock = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_min_freq";
        let file = Target::File { path: clock.into(), form: Form::Plain };
        let machine = || three()[0].1.clone().change("cpufreq-pinned", file.clone(), "3900000");
        let text = |machine: Machine| machine.generate(&ENTRY).unwrap().files.remove(0).text;
        assert!(text(machine()).contains(clock));
        let without = Target::Kernel { parameter: "intel_pstate".into() };
        assert!(!text(machine().change("pstate-driver", without, "disable")).contains(clock));
    }

    #[test]
    fn a_parameter_of_kvm_that_is_its_default_is_not_written() {
        let [(_, mut machine), ..] = three();
        let module = Target::Module { module: "kvm_intel".into(), parameter: "ept".into() };
        machine = machine.change("virt-hw-assists", module, "Y");
        let text = |machine: &Machine| machine.generate(&ENTRY).unwrap().files.remove(0).text;
        assert!(text(&machine).contains("ept=Y"));
        machine.changes[0].now = Some("Y".into());
        assert!(!text(&machine).contains("ept"));
    }
}
