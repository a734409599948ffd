//! The interrupt card: a thread of the host that raises interrupts in a guest, from the command line to the JSON.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{
    alone, await_tick, bare_is_usable, beside_others, json, kill, marked, measures_beside_others,
    nothing_is_left, output, skipped, stderr, stdout, tactus,
};

const CARD: [&str; 6] = ["measure", "--measurement", "interrupt", "--to", "bare", "--json"];

/// The notes of the one row of a bundle.
fn notes(bundle: &Path) -> Vec<String> {
    let mut rows = fs::read_dir(bundle.join("scenarios")).expect("rows").flatten();
    let result = fs::read(rows.next().expect("a row").path().join("result.json")).expect("a result");
    let result: Value = serde_json::from_slice(&result).expect("JSON");
    let notes = result["notes"].as_array().expect("notes").iter();
    notes.filter_map(|note| note["text"].as_str()).map(str::to_owned).collect()
}

#[test]
fn a_guest_answers_every_interrupt_of_the_card() {
    let Some(_alone) = alone() else { return };
    if !bare_is_usable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bundle");
    let run = output(tactus().args(CARD).args(["-i", "2ms", "-D", "3s", "--out"]).arg(&bundle));
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", stderr(&run));
    nothing_is_left();
    let document = json(&run);
    let entry = &document["scenarios"][0];
    assert_eq!((&entry["status"], &entry["ended"]), (&"measured".into(), &"complete".into()), "{entry:#}");
    assert_eq!(entry["measurement"], "interrupt");
    assert_ne!(entry["evidence"], "bare metal", "it is of a guest, wherever it is timed: {entry:#}");
    let series = &entry["series"].as_array().unwrap()[0];
    let count = |name: &str| series[name].as_u64().unwrap();
    // An interrupt for each period, or the period passed while the one before was unanswered.
    assert!((1_400..=1_501).contains(&(count("cycles") + count("overruns"))), "{entry:#}");
    assert!(count("min_ns") > 0 && count("min_ns") <= count("p50_ns"), "{entry:#}");
    assert_eq!(entry["to"], "bare", "{entry:#}");
    assert_eq!(entry["card"]["duplicates"], 0, "{entry:#}");
    // A machine that others share may stand still for a second.
    let lost = entry["card"]["lost"].as_u64().unwrap();
    assert_eq!(lost > 0, count("max_ns") >= 1_000_000_000, "lost is what took a second: {entry:#}");
    let notes = notes(&bundle);
    assert!(
        notes.iter().any(|note| note.contains("the card's own part of a latency")
            || note.contains("the card's own part of a latency is unknown")),
        "{notes:?}"
    );
    assert_eq!(notes.iter().any(|note| note.contains("were lost")), lost > 0, "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("more than were raised")), "{notes:?}");
}

/// Whether there is a kernel for Linux guests; if not, that is said.
fn has_kernel() -> bool {
    let kernels = output(tactus().args(["kernel", "list", "--json"]));
    let found = stdout(&kernels).contains("\"preempt_rt\"");
    if !found {
        skipped("this needs a kernel for guests");
    }
    found
}

#[test]
fn a_program_in_a_linux_guest_answers_the_card_that_it_has_by_vfio() {
    let Some(_turn) = measures_beside_others() else { return };
    if !bare_is_usable() || !has_kernel() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bundle");
    let to = ["measure", "--measurement", "interrupt", "--to", "qemu", "--json", "-i", "2ms", "-D", "1s"];
    let run = output(tactus().args(to).arg("--out").arg(&bundle));
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", stderr(&run));
    nothing_is_left();
    let document = json(&run);
    let entry = &document["scenarios"][0];
    assert_eq!((&entry["status"], &entry["ended"]), (&"measured".into(), &"complete".into()), "{entry:#}");
    assert!(entry["series"][0]["cycles"].as_u64().unwrap() > 0, "{entry:#}");
    assert_eq!(entry["card"]["duplicates"], 0, "{entry:#}");
    let notes = notes(&bundle);
    assert!(notes.iter().any(|note| note.contains("user space") && note.contains("IOMMU")), "{notes:?}");
}

#[test]
fn the_kernel_of_a_linux_guest_answers_the_card_by_a_module_that_is_built_for_it() {
    let Some(_turn) = measures_beside_others() else { return };
    if !bare_is_usable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (plan, bundle) = (dir.path().join("plan.toml"), dir.path().join("bundle"));
    let text = "name = \"p\"\n[environment.host]\nkind = \"host\"\n[environment.guest]\nkind = \"qemu\"\nkernel = \"rt\"\ncpus = \"first\"\n\
                [[scenario]]\nname = \"s\"\ninterval = \"2ms\"\nduration = \"1s\"\n[[scenario.activity]]\n\
                measure = { kind = \"interrupt\", answer = \"kernel\" }\nin = \"host\"\nto = \"guest\"\n";
    fs::write(&plan, text).unwrap();
    let run = output(tactus().arg("run").arg(&plan).arg("--json").arg("--out").arg(&bundle));
    nothing_is_left();
    let document = json(&run);
    let entry = &document["scenarios"][0];
    if entry["status"] == "skipped" {
        let reason = entry["reason"].as_str().unwrap();
        assert!(reason.contains("kernel") || reason.contains("not installed"), "{reason}");
        return skipped(reason);
    }
    assert_eq!((&entry["status"], &entry["ended"]), (&"measured".into(), &"complete".into()), "{entry:#}");
    assert!(entry["series"][0]["cycles"].as_u64().unwrap() > 0, "{entry:#}");
    assert_eq!(entry["card"]["duplicates"], 0, "{entry:#}");
    let notes = notes(&bundle);
    assert!(
        notes.iter().any(|note| note.contains("in the kernel") && note.contains("tactus_card")),
        "{notes:?}"
    );
}

/// The description of a card that ships.
fn shipped(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/cards").join(name)
}

#[test]
fn a_card_that_is_a_device_is_driven_by_its_registers_in_a_linux_guest() {
    let Some(_turn) = measures_beside_others() else { return };
    if !bare_is_usable() || !has_kernel() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bundle");
    let words =
        ["measure", "--measurement", "interrupt", "--in", "qemu", "--pci", "edu", "-i", "2ms", "-D", "2s"];
    let run = output(
        tactus().args(words).arg("--card").arg(shipped("edu.toml")).arg("--json").arg("--out").arg(&bundle),
    );
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", stderr(&run));
    nothing_is_left();
    let document = json(&run);
    let entry = &document["scenarios"][0];
    assert_eq!((&entry["status"], &entry["ended"]), (&"measured".into(), &"complete".into()), "{entry:#}");
    assert_ne!(entry["evidence"], "bare metal", "{entry:#}");
    assert!(entry["to"].is_null(), "nobody else answers: {entry:#}");
    let series = &entry["series"].as_array().unwrap()[0];
    let count = |name: &str| series[name].as_u64().unwrap();
    // The vCPU that raises is kept from its CPU now and then: nothing is raised then.
    let left_out = entry["card"]["left_out"].as_u64().unwrap();
    assert!((990..=1_001).contains(&(count("cycles") + count("overruns") + left_out)), "{entry:#}");
    assert!(count("min_ns") > 0 && count("min_ns") <= count("p50_ns"), "{entry:#}");
    assert_eq!(entry["card"]["duplicates"], 0, "{entry:#}");
    let lost = entry["card"]["lost"].as_u64().unwrap();
    assert_eq!(lost > 0, count("max_ns") >= 1_000_000_000, "lost is what took a second: {entry:#}");
    let notes = notes(&bundle);
    let said = |words: &[&str]| notes.iter().any(|note| words.iter().all(|word| note.contains(word)));
    assert!(
        said(&["QEMU's edu (1234:11e8 at 0000:", "BAR 0, mapped", "Its MSI", "behind an IOMMU"]),
        "{notes:?}"
    );
    assert!(said(&["raised on CPU 0"]) && said(&["no readable clock"]), "{notes:?}");
    // Which card it was stands in the report, and its description in the plan that the bundle keeps.
    let report = output(tactus().arg("report").arg(&bundle).args(["--format", "text", "--out", "-"]));
    assert!(String::from_utf8_lossy(&report.stdout).contains("QEMU's edu"), "{}", stderr(&report));
    assert!(fs::read_to_string(bundle.join("plan.toml")).unwrap().contains("1234:11e8"));
}

#[test]
fn a_card_that_is_not_there_or_is_described_wrongly_is_named() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let wrong = dir.path().join("wrong.toml");
    let edu = fs::read_to_string(shipped("edu.toml")).unwrap();
    fs::write(&wrong, edu.replacen("at = 0x60", "at = 0x62", 1)).unwrap();
    let measure = |card: &Path, to: &[&str]| {
        let words = ["measure", "--measurement", "interrupt", "-D", "1s", "--json", "--card"];
        output(tactus().args(words).arg(card).args(to))
    };
    for (card, more, said) in [
        (&wrong, &[][..], "wrong.toml:10: trigger.at"),
        (&dir.path().join("absent.toml"), &[], "absent.toml"),
        (&shipped("edu.toml"), &["--in", "podman"], "no device that could be a card"),
        (&shipped("edu.toml"), &["--in", "qemu"], "no device that could be a card"),
        (&shipped("edu.toml"), &["--in", "qemu", "--pci", "edu,x=y"], "not a PCI address"),
    ] {
        let run = measure(card, more);
        let words = stderr(&run);
        assert_eq!(run.status.code(), Some(2), "{words}");
        assert!(words.contains(said) && words.contains("hint:"), "{words}");
    }
    // This machine has no such card.
    let run = measure(&shipped("edu.toml"), &[]);
    let entry = &json(&run)["scenarios"][0];
    assert_eq!((&entry["status"], &entry["ended"]), (&"skipped".into(), &"refused".into()), "{entry:#}");
    assert!(entry["reason"].as_str().unwrap().contains("no device 1234:11e8 (QEMU's edu)"), "{entry:#}");
    nothing_is_left();
}

#[test]
fn a_guest_that_dies_under_the_card_ends_the_measurement_with_its_last_words_and_what_was_measured() {
    let Some(_turn) = measures_beside_others() else { return };
    if !bare_is_usable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bundle");
    let mut command = tactus();
    command.args(CARD).args(["-i", "2ms", "-D", "60s", "--no-self-test", "--out"]).arg(&bundle);
    let run = std::thread::spawn(move || output(&mut command));
    await_tick(&bundle);
    let guest = marked().into_iter().find(|process| process.to_string().contains("ivshmem-doorbell"));
    kill(guest.expect("a guest").pid, Signal::KILL);
    let run = run.join().unwrap();
    nothing_is_left();
    let document = json(&run);
    let entry = &document["scenarios"][0];
    assert_eq!(entry["ended"], "failed", "{entry:#}");
    let reason = entry["reason"].as_str().unwrap();
    assert!(
        reason.contains("bare, the peer of this measurement, ended") && reason.contains("killed"),
        "{reason}"
    );
    assert!(entry["series"][0]["cycles"].as_u64().unwrap() > 0, "what was measured stays: {entry:#}");
}

#[test]
fn a_guest_that_is_reset_under_the_card_ends_the_measurement_with_its_last_words_and_what_was_measured() {
    let Some(_turn) = measures_beside_others() else { return };
    if !bare_is_usable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.toml");
    // It counts for a second or more, so that something is measured before.
    let resets = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo b > /proc/sysrq-trigger";
    let text = format!(
        "name = \"p\"\n[environment.host]\nkind = \"host\"\n[environment.guest]\nkind = \"qemu\"\ncpus = \"first\"\n\
         programs = [\"/bin/dash\"]\n[[scenario]]\nname = \"s\"\ninterval = \"2ms\"\nduration = \"60s\"\n\
         [[scenario.activity]]\nmeasure = \"interrupt\"\nin = \"host\"\nto = \"guest\"\n\
         [[scenario.activity]]\nload = {{ kind = \"command\", run = [\"/bin/dash\", \"-c\", \"{resets}\"] }}\nin = \"guest\"\n"
    );
    fs::write(&plan, text).unwrap();
    let run =
        output(tactus().arg("run").arg(&plan).arg("--json").arg("--out").arg(dir.path().join("bundle")));
    nothing_is_left();
    let document = json(&run);
    let entry = &document["scenarios"][0];
    if entry["status"] == "skipped" {
        return skipped(entry["reason"].as_str().unwrap());
    }
    assert_eq!(entry["ended"], "failed", "{entry:#}");
    let reason = entry["reason"].as_str().unwrap();
    assert!(
        reason.contains("guest, the peer of this measurement, ended") && reason.contains("Resetting"),
        "{reason}"
    );
    assert!(entry["series"][0]["cycles"].as_u64().unwrap() > 0, "what was measured stays: {entry:#}");
}

#[test]
fn a_card_without_a_guest_that_takes_it_is_refused_before_anything_starts() {
    let _turn = beside_others();
    for (to, said) in
        [(&["--to", "podman"][..], "cannot have an interrupt card"), (&[], "has no guest to go to")]
    {
        let run = output(tactus().args(["measure", "--measurement", "interrupt", "-D", "1s"]).args(to));
        let words = stderr(&run);
        assert_eq!(run.status.code(), Some(2), "{words}");
        assert!(words.contains(said) && words.contains("hint:"), "{words}");
    }
}
