//! The files of `tune apply --persist`, read by their readers: modprobe, systemd-sysctl, systemd-tmpfiles, systemd
//! and GRUB's shell. The readers run in separate mount namespaces and directories: nothing of this machine is set.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

use tactus_audit::{Intent, Subject};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_system::{Memory, System};
use tactus_tune::apply::{ApplyOptions, apply};
use tactus_tune::plan::{Choice, Plan};
use tactus_tune::profile;
use tactus_tune::transaction::Begin;

use crate::common::{has, run, skipped, words};

/// The recorded machines whose drop-ins are tried.
const MACHINES: [&str; 3] = ["intel-bare-untuned", "intel-bare-tuned", "amd-epyc"];
/// Settings that a plan has only when it is asked for them: they make lines, too.
const WITH: [&str; 6] = ["nx-huge-pages", "rt-throttling", "watchdogs", "hung-task", "turbo", "split-lock"];

/// The files that are written on a recorded machine, by their names.
fn written(machine: &str) -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../tactus-audit/tests/machines/{machine}.json.gz"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let facts: Facts = serde_json::from_str(&text).unwrap();
    let intent = Intent { isolated: Some("2-7".parse().unwrap()), ..Intent::default() };
    // Give each CPU a separate core.
    let mut facts = facts;
    for cpu in 0..32 {
        let siblings = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        if facts.text(&siblings).is_some() {
            facts.keep(siblings, cpu.to_string());
        }
    }
    facts.keep("/proc/cmdline", "root=/dev/vda1");
    let choice = Choice { with: WITH.map(str::to_owned).to_vec(), ..Choice::default() };
    let stock = profile::find("realtime-virtual-host").unwrap();
    let plan = Plan::new(&Subject::new(&facts, Role::Host, &intent), stock, &choice);
    assert_eq!(plan.refusals, [], "{machine}");
    let system = Memory::new()
        .root()
        .program("update-grub")
        .file("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet\"\n")
        .answer(&["update-grub"], 0, "", "")
        .answer(&["systemctl"], 0, "", "");
    let begin = Begin { persist: true, ..Begin::default() };
    apply(&system, &plan, &ApplyOptions { begin, ..ApplyOptions::default() }).unwrap();
    let mut files = BTreeMap::new();
    for name in [
        "/etc/modprobe.d/tactus.conf",
        "/etc/sysctl.d/90-tactus.conf",
        "/etc/tmpfiles.d/tactus.conf",
        "/etc/systemd/system.conf.d/50-tactus.conf",
        "/etc/systemd/system/irqbalance.service.d/50-tactus.conf",
        "/etc/systemd/system/irqbalance.service.d/50-tactus.env",
        "/etc/default/grub.d/50-tactus.cfg",
    ] {
        files.extend(system.text(name).map(|text| (name.to_owned(), text)));
    }
    files
}

/// A file of every machine, in a separate directory.
fn each(name: &str, check: impl Fn(&Path, &str)) {
    for machine in MACHINES {
        let dir = tempfile::tempdir().unwrap();
        let files = written(machine);
        let text = files.get(name).unwrap_or_else(|| panic!("{machine} has no {name}: {:?}", files.keys()));
        for (name, text) in &files {
            put(dir.path(), name, text);
        }
        check(dir.path(), text);
    }
}

/// Writes a file at its place below a root.
fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name.trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The lines that are no comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

fn is_root() -> bool {
    let root = rustix::process::getuid().is_root();
    if !root {
        skipped("only root has a mount namespace of its own");
    }
    root
}

#[test]
fn modprobe_takes_every_option() {
    if !has("modprobe") {
        return;
    }
    let shown = |file: &Path| run(Command::new("modprobe").arg("-c").arg("-C").arg(file));
    each("/etc/modprobe.d/tactus.conf", |root, text| {
        let file = root.join("etc/modprobe.d/tactus.conf");
        let output = shown(&file);
        let (said, all) = (String::from_utf8_lossy(&output.stderr), words(&output));
        assert!(output.status.success() && said.is_empty(), "{said}");
        let options: Vec<&str> = lines(text).collect();
        assert!(options.len() > 1, "{text}");
        for line in options {
            assert!(all.lines().any(|other| other == line), "modprobe does not know `{line}`: {all}");
        }
        fs::write(&file, format!("{text}option kvm x=1\n")).unwrap();
        assert!(words(&shown(&file)).contains("ignoring bad line"), "a bad line is seen");
    });
}

#[test]
fn systemd_sysctl_writes_every_value() {
    let program = "/lib/systemd/systemd-sysctl";
    if !Path::new(program).exists() {
        return skipped("systemd-sysctl is not installed");
    }
    if !is_root() {
        return;
    }
    each("/etc/sysctl.d/90-tactus.conf", |root, text| {
        // The directory that it writes to is mounted over /proc/sys.
        let values: Vec<(&str, &str)> = lines(text).map(|line| line.split_once(" = ").unwrap()).collect();
        assert!(values.len() > 5, "{text}");
        for (name, _) in &values {
            put(root, &format!("proc/{name}"), "");
        }
        let script = format!(
            "mount --bind \"$0/proc\" /proc/sys && exec {program} \"$0/etc/sysctl.d/90-tactus.conf\""
        );
        let output = run(Command::new("unshare").args(["-m", "sh", "-c", &script]).arg(root));
        assert!(output.status.success() && words(&output).is_empty(), "{}", words(&output));
        for (name, value) in values {
            assert_eq!(fs::read_to_string(root.join("proc").join(name)).unwrap().trim_end(), value, "{name}");
        }
    });
}

#[test]
fn systemd_tmpfiles_writes_every_value_and_makes_no_file() {
    if !has("systemd-tmpfiles") {
        return;
    }
    each("/etc/tmpfiles.d/tactus.conf", |root, text| {
        let values: Vec<(&str, &str)> = lines(text)
            .map(|line| line.strip_prefix("w ").and_then(|rest| rest.split_once(" - - - - ")).unwrap())
            .collect();
        assert!(values.len() > 5, "{text}");
        let (gone, there) = values.split_first().unwrap();
        for (path, _) in there {
            put(root, path, "");
        }
        let output = run(Command::new("systemd-tmpfiles")
            .arg("--create")
            .arg(format!("--root={}", root.display()))
            .arg("tactus.conf"));
        assert!(output.status.success() && words(&output).is_empty(), "{}", words(&output));
        let read = |path: &str| fs::read_to_string(root.join(path.trim_start_matches('/')));
        for (path, value) in there {
            assert_eq!(read(path).unwrap(), *value, "{path}");
        }
        assert!(read(gone.0).is_err(), "{} is not there and is not made", gone.0);
    });
}

/// systemd's verdict on a unit below a root.
fn verified(root: &Path, unit: &str) -> Output {
    run(Command::new("systemd-analyze")
        .arg(format!("--root={}", root.display()))
        .args(["--man=no", "verify", unit]))
}

#[test]
fn systemd_knows_every_key_of_the_drop_ins() {
    if !has("systemd-analyze") {
        return;
    }
    let unit = "[Unit]\nDescription=x\nDefaultDependencies=no\n[Service]\nExecStart=/bin/true\n";
    let name = "etc/systemd/system/irqbalance.service";
    each("/etc/systemd/system/irqbalance.service.d/50-tactus.conf", |root, text| {
        put(root, name, unit);
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::copy("/bin/true", root.join("bin/true")).unwrap();
        let output = verified(root, "irqbalance.service");
        assert!(output.status.success() && words(&output).is_empty(), "{}", words(&output));
        let wrong = text.replace("EnvironmentFile=", "EnvironmentFiles=");
        put(root, &format!("{name}.d/50-tactus.conf"), &wrong);
        assert!(
            words(&verified(root, "irqbalance.service")).contains("EnvironmentFiles"),
            "a wrong key is seen"
        );
    });
}

#[test]
fn the_environment_of_irqbalance_is_one_assignment_for_a_shell_too() {
    each("/etc/systemd/system/irqbalance.service.d/50-tactus.env", |root, _| {
        let file = root.join("etc/systemd/system/irqbalance.service.d/50-tactus.env");
        let script = ". \"$0\"; printf %s \"$IRQBALANCE_BANNED_CPULIST\"";
        let output = run(Command::new("sh").args(["-euc", script]).arg(file));
        assert!(output.status.success(), "{}", words(&output));
        assert_eq!(words(&output).parse::<tactus_model::CpuSet>().unwrap().to_string(), "2-7");
    });
}

/// `[Manager]` is read by the first process alone; a service's CPUAffinity= has the same syntax (systemd.exec(5)).
#[test]
fn systemd_takes_the_cpus_of_all_services() {
    if !has("systemd-analyze") {
        return;
    }
    each("/etc/systemd/system.conf.d/50-tactus.conf", |root, text| {
        let line = lines(text).find(|line| line.starts_with("CPUAffinity=")).unwrap();
        assert_eq!(lines(text).collect::<Vec<_>>(), ["[Manager]", line]);
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::copy("/bin/true", root.join("bin/true")).unwrap();
        let unit = |line: &str| {
            let text = format!("[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/bin/true\n{line}\n");
            put(root, "etc/systemd/system/some.service", &text);
            words(&verified(root, "some.service"))
        };
        assert_eq!(unit(line), "");
        assert!(unit("CPUAffinity=few").contains("CPU"), "what is none is seen");
    });
}

#[test]
fn the_shell_of_grub_adds_to_the_command_line_that_is_there() {
    if !has("grub-script-check") {
        return;
    }
    each("/etc/default/grub.d/50-tactus.cfg", |root, _| {
        let script = "GRUB_CMDLINE_LINUX='quiet $x'; . \"$0\"; printf %s \"$GRUB_CMDLINE_LINUX\"";
        let file = root.join("etc/default/grub.d/50-tactus.cfg");
        let output = run(Command::new("sh").args(["-euc", script]).arg(file));
        let line = words(&output);
        assert!(output.status.success() && line.starts_with("quiet $x "), "{line}");
        assert!(line.split(' ').any(|word| word == "isolcpus=managed_irq,domain,2-7"), "{line}");
        put(root, "grub.cfg", &format!("menuentry 'x' {{\n linux /vmlinuz {line}\n}}\n"));
        let parsed = run(Command::new("grub-script-check").arg(root.join("grub.cfg")));
        assert!(parsed.status.success(), "{}", words(&parsed));
    });
}
