//! A guest without an operating system, from the command line to the JSON.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{
    alone, bare_is_usable, beside_others, json, nothing_is_left, output, skipped, stderr, stdout, tactus,
};

#[test]
fn the_floor_of_the_hypervisor_is_measured_and_proven_before_and_after() {
    let Some(_alone) = alone() else { return };
    if !bare_is_usable() {
        return;
    }
    let run =
        output(tactus().args(["measure", "--in", "bare", "-D", "2s", "-i", "2ms", "--json", "--kvm-exits"]));
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", stderr(&run));
    nothing_is_left();
    let document = json(&run);
    let entry = &document["scenarios"][0];
    assert_eq!((&entry["status"], &entry["ended"]), (&"measured".into(), &"complete".into()), "{entry:#}");
    assert_ne!(entry["evidence"], "bare metal", "it is a guest of something: {entry:#}");
    let series = entry["series"].as_array().unwrap();
    assert_eq!(series.len(), 1, "{entry:#}");
    assert_eq!(series[0]["kind"], "interrupt");
    // An interrupt for each period, or the period was missed and counted.
    let count = |name: &str| series[0][name].as_u64().unwrap();
    assert!((950..=1001).contains(&(count("cycles") + count("overruns"))), "{entry:#}");
    assert_eq!(count("lost"), 0, "{entry:#}");
    assert!(count("min_ns") > 0 && count("min_ns") <= count("p50_ns"), "{entry:#}");
    let control = &entry["self_test"];
    let (injected, seen) = (control["injected_ns"].as_u64().unwrap(), control["seen_ns"].as_u64().unwrap());
    assert!(injected >= 1_000_000, "{entry:#}");
    // One clock counts both, and the interrupt was due when the block is said to have begun: however loud the place is,
    // less than that cannot have been seen.
    assert!(seen >= injected, "{entry:#}");
    exits_are_told_or_unknowable(entry);
}

/// KVM sees each wake-up leave and come back. An emulator has no exits: the number is unknown, not zero.
fn exits_are_told_or_unknowable(entry: &Value) {
    let exits = &entry["exits"];
    if entry["evidence"] == "emulated" {
        assert!(exits["unavailable"].as_str().unwrap().contains("KVM runs none"), "{exits:#}");
        return;
    }
    let Some(kinds) = exits["counted"]["kinds"].as_array() else {
        let why = exits["unavailable"].as_str().unwrap();
        assert!(!why.is_empty());
        skipped(why);
        return;
    };
    let number = |kind: &Value, name: &str| kind[name].as_u64().unwrap();
    let times: u64 = kinds.iter().map(|kind| number(kind, "count")).sum();
    assert!(times >= entry["series"][0]["cycles"].as_u64().unwrap(), "one for each wake-up: {exits:#}");
    let whole = number(&exits["counted"], "ns");
    for kind in kinds {
        let (ns, longest) = (number(kind, "ns"), number(kind, "longest_ns"));
        assert!(longest > 0 && longest <= ns && ns <= longest * number(kind, "count"), "{kind:#}");
        assert!(ns <= whole, "one virtual CPU leaves one time after the other: {kind:#} of {whole}");
    }
}

#[test]
fn what_needs_an_operating_system_is_refused_before_a_guest_starts() {
    let _turn = beside_others();
    for (words, named) in
        [(["--measurement", "os"], "`os`"), (["--load", "cpu"], "`cpu`"), (["-t", "2"], "`threads`")]
    {
        let run = output(tactus().args(["measure", "--in", "bare", "-a", "0", "-D", "1s"]).args(words));
        let said = stderr(&run);
        assert_eq!(run.status.code(), Some(2), "{said}");
        assert!(
            said.contains("`bare` cannot do this") && said.contains(named) && said.contains("hint:"),
            "{said}"
        );
    }
    let run = output(tactus().args(["audit", "--in", "bare"]));
    assert_eq!(run.status.code(), Some(2), "{}", stderr(&run));
}

#[test]
fn what_makes_a_guest_exit_is_measured_on_the_host_and_without_an_operating_system() {
    let Some(_alone) = alone() else { return };
    if !bare_is_usable() {
        return;
    }
    let measured = |kind: &str| {
        let run =
            output(tactus().args(["measure", "--in", kind, "--measurement", "exits", "-D", "3s", "--json"]));
        assert!(matches!(run.status.code(), Some(0 | 3)), "{kind}: {}", stderr(&run));
        let entry = json(&run)["scenarios"][0].clone();
        assert_eq!(
            (&entry["status"], &entry["ended"]),
            (&"measured".into(), &"complete".into()),
            "{entry:#}"
        );
        for value in entry["values"].as_array().unwrap() {
            assert_eq!(value["unit"], "ns", "{value:#}");
            let number = |name: &str| value[name].as_f64().unwrap_or_else(|| panic!("{name}: {value:#}"));
            assert!(number("samples") >= 6.0 && number("variation") >= 0.0, "{value:#}");
            assert!(number("low") <= number("value") && number("value") <= number("high"), "{value:#}");
            assert!(number("value") > 0.0, "{value:#}");
        }
        entry
    };
    let names = |entry: &Value| -> Vec<String> {
        let values = entry["values"].as_array().unwrap().iter();
        values.map(|value| value["item"].as_str().unwrap().to_owned()).collect()
    };
    let (host, bare) = (measured("host"), measured("bare"));
    nothing_is_left();
    let (host_has, bare_has) = (names(&host), names(&bare));
    assert!(host_has.contains(&"timer re-arm".to_owned()), "{host_has:?}");
    assert!(!host_has.contains(&"MMIO read".to_owned()), "no program can: {host_has:?}");
    for item in ["cpuid", "port write", "MMIO read", "timer register write", "IPI to itself", "wake from HLT"]
    {
        assert!(bare_has.contains(&item.to_owned()), "{item}: {bare_has:?}");
    }
    // An emulator has no hypercall: there is no value, and no 0.
    assert_eq!(bare_has.contains(&"hypercall".to_owned()), bare["evidence"] != "emulated", "{bare_has:?}");
}

/// The menu of a boot loader, as `grub.cfg`.
fn disc(dir: &Path, words: &str) -> Option<std::path::PathBuf> {
    if !Path::new("/usr/lib/grub/i386-pc").exists() {
        skipped("this needs GRUB for PCs");
        return None;
    }
    let image = dir.join("disc/boot/tactus-bare-guest.elf");
    let written = output(tactus().args(["kernel", "bare", "--out"]).arg(&image));
    assert!(written.status.success(), "{}", stderr(&written));
    assert!(stdout(&written).contains("multiboot2 /boot/tactus-bare-guest.elf "), "{}", stdout(&written));
    let menu =
        format!("set timeout=0\nmenuentry tactus {{ multiboot2 /boot/tactus-bare-guest.elf {words} }}\n");
    fs::create_dir_all(dir.join("disc/boot/grub")).unwrap();
    fs::write(dir.join("disc/boot/grub/grub.cfg"), menu).unwrap();
    let disc = dir.join("disc.iso");
    let mut make = Command::new("grub-mkrescue");
    make.args(["-d", "/usr/lib/grub/i386-pc", "-o"]).arg(&disc).arg(dir.join("disc"));
    let made = match make.output() {
        Ok(made) => made,
        Err(error) => {
            skipped(&format!("grub-mkrescue: {error}"));
            return None;
        }
    };
    assert!(made.status.success(), "{}", stderr(&made));
    Some(disc)
}

/// Starts a machine by these words until it switches itself off, and returns what it said on its serial line.
fn said_on_the_line(dir: &Path, starts: &[&OsStr]) -> std::path::PathBuf {
    let serial = dir.join("serial.log");
    let mut machine = Command::new("timeout");
    machine.args([
        "--signal=KILL",
        "120",
        "qemu-system-x86_64",
        "-M",
        "pc,hpet=off",
        "-m",
        "64",
        "-nodefaults",
    ]);
    machine.args(["-display", "none", "-accel", "tcg", "-cpu", "max", "-no-reboot"]).args(starts);
    machine
        .args(["-device", "isa-debug-exit,iobase=0xf4", "-serial"])
        .arg(format!("file:{}", serial.display()));
    let ended = machine.output().unwrap();
    assert!(ended.status.code().is_some(), "it went on: {}", stderr(&ended));
    serial
}

#[test]
fn a_boot_loader_starts_the_guest_on_a_machine_and_what_it_says_on_the_serial_line_is_imported() {
    let _turn = beside_others();
    if !bare_is_usable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(disc) = disc(dir.path(), "interval=5ms duration=1s tick=300ms") else { return };
    let serial = said_on_the_line(dir.path(), &["-cdrom".as_ref(), disc.as_os_str()]);
    let bundle = dir.path().join("bundle");
    let imported = output(tactus().arg("convert").arg(&serial).arg("--out").arg(&bundle));
    assert!(imported.status.success(), "{}", stderr(&imported));
    let document = json(&output(tactus().arg("report").arg(&bundle).arg("--json")));
    let entry = &document["scenarios"][0];
    assert_eq!((&entry["evidence"], &entry["ended"]), (&"imported".into(), &"complete".into()), "{entry:#}");
    let series = &entry["series"][0];
    assert_eq!(series["kind"], "interrupt", "{entry:#}");
    let count = |name: &str| series[name].as_u64().unwrap();
    // An interrupt for each period, or it was missed and counted.
    assert!((199..=201).contains(&(count("cycles") + count("overruns"))), "{entry:#}");
    let mut rows = fs::read_dir(bundle.join("scenarios")).unwrap().flatten();
    let row: Value =
        serde_json::from_slice(&fs::read(rows.next().unwrap().path().join("result.json")).unwrap()).unwrap();
    assert_eq!(row["interval_ns"], 5_000_000, "{row:#}");
    let notes = row["notes"].to_string();
    for said in
        ["TCGTCGTCGTCG", "before measuring it kept interrupts off", "after measuring it kept interrupts off"]
    {
        assert!(notes.contains(said), "{notes}");
    }
    assert!(!notes.contains("lost on the line") && !notes.contains("ends before"), "{notes}");
}

#[test]
fn what_a_command_line_asks_of_the_guest_and_cannot_be_is_refused_on_the_serial_line() {
    let _turn = beside_others();
    if !bare_is_usable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(disc) = disc(dir.path(), "interval=1ps") else { return };
    let serial = said_on_the_line(dir.path(), &["-cdrom".as_ref(), disc.as_os_str()]);
    let imported = output(tactus().arg("convert").arg(&serial));
    assert_eq!(imported.status.code(), Some(2), "{}", stderr(&imported));
    assert!(stderr(&imported).contains("nothing was measured: `interval=1ps`"), "{}", stderr(&imported));
}

#[test]
fn a_hypervisor_that_tactus_does_not_know_starts_the_guest_with_a_command_line_too() {
    let _turn = beside_others();
    if !bare_is_usable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("guest.elf");
    assert!(output(tactus().args(["kernel", "bare", "--out"]).arg(&image)).status.success());
    let starts =
        ["-kernel".as_ref(), image.as_os_str(), "-append".as_ref(), "interval=5ms duration=500ms".as_ref()];
    let serial = said_on_the_line(dir.path(), &starts);
    let imported = output(tactus().arg("convert").arg(&serial).arg("--out").arg(dir.path().join("bundle")));
    assert!(imported.status.success(), "{}", stderr(&imported));
    assert!(stdout(&imported).contains("TCGTCGTCGTCG"), "{}", stdout(&imported));
}
