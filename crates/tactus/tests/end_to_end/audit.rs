//! `tactus audit`: on this machine, in a container and a guest, and from what a run recorded.

use std::fs;

use serde_json::Value;

use crate::common::{
    beside_others, json, measures_beside_others, nothing_is_left, output, skipped, stderr, stdout, tactus,
};

fn findings(document: &Value) -> &Vec<Value> {
    document["audits"][0]["findings"].as_array().unwrap_or_else(|| panic!("{document:#}"))
}

fn state<'a>(document: &'a Value, id: &str) -> &'a str {
    findings(document)
        .iter()
        .find(|finding| finding["id"] == id)
        .and_then(|finding| finding["state"].as_str())
        .unwrap_or_else(|| panic!("no check {id}"))
}

#[test]
fn the_list_is_the_contract_that_other_programs_read() {
    let _turn = beside_others();
    let list = json(&output(tactus().args(["audit", "--list", "--json"])));
    let entries = list.as_array().unwrap();
    assert!(entries.len() > 120, "{}", entries.len());
    for entry in entries {
        for key in ["id", "source", "severity", "applies", "set", "reversible"] {
            assert!(!entry[key].is_null(), "{key}: {entry:#}");
        }
        let id = entry["id"].as_str().unwrap();
        let explained = output(tactus().args(["explain", id]));
        assert!(stdout(&explained).contains("expects"), "{id}: {}", stderr(&explained));
    }
}

/// Whether a virtual machine runs here now, which may be another test's.
fn carries_guests() -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let names = processes.filter_map(|process| fs::read_to_string(process.path().join("comm")).ok());
    names.into_iter().any(|name| name.starts_with("qemu-system"))
}

#[test]
fn this_machine_is_audited_and_nothing_of_it_changes() {
    let _turn = beside_others();
    let watched = ["/proc/sys/kernel/sched_rt_runtime_us", "/sys/kernel/mm/transparent_hugepage/enabled"];
    let before: Vec<_> = watched.iter().map(|path| fs::read(path).ok()).collect();
    let mut carries = carries_guests();
    let result = output(tactus().args(["audit", "--json", "--fail-on", "never"]));
    carries |= carries_guests();
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let document = json(&result);
    // Without nested virtualization this machine is a guest, unless it runs guests all the same.
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap();
    let has = |flag: &str| flags.split_ascii_whitespace().any(|word| word == flag);
    let role = if has("hypervisor") && !has("vmx") && !has("svm") { "guest" } else { "host" };
    let said = document["audits"][0]["role"].as_str().unwrap();
    assert!(said == role || (carries && said == "host"), "{said}, and not {role}");
    let called = output(tactus().args(["audit", "--role", "host", "--json", "--fail-on", "never"]));
    assert_eq!(json(&called)["audits"][0]["role"], "host");
    let listed = json(&output(tactus().args(["audit", "--list", "--json"])));
    assert_eq!(findings(&document).len(), listed.as_array().unwrap().len(), "every check has an answer");
    for finding in findings(&document) {
        assert!(!finding["message"].as_str().unwrap().is_empty(), "{finding:#}");
    }
    assert_eq!(before, watched.iter().map(|path| fs::read(path).ok()).collect::<Vec<_>>());
    nothing_is_left();
}

#[test]
fn the_threshold_decides_the_exit_code() {
    let _turn = beside_others();
    let any = output(tactus().args(["audit", "--brief", "--fail-on", "info"]));
    let never = output(tactus().args(["audit", "--brief", "--fail-on", "never"]));
    // Every Linux machine has something to remark upon: a kernel with its mitigations, to begin with.
    assert_eq!(any.status.code(), Some(1), "{}", stdout(&any));
    assert_eq!(never.status.code(), Some(0));
}

#[test]
fn wrong_words_are_named_with_what_would_be_right() {
    let _turn = beside_others();
    for (arguments, word) in [
        (vec!["audit", "--only", "nonsense"], "nonsense"),
        (vec!["audit", "--isolate", "4000"], "4000"),
        (vec!["audit", "--in", "mainframe"], "mainframe"),
        (vec!["audit", "--from", "/no/such/bundle"], "/no/such/bundle"),
        (vec!["explain", "nonsense"], "nonsense"),
    ] {
        let result = output(tactus().args(&arguments));
        let said = stderr(&result);
        assert_eq!(result.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word) && said.contains("hint:"), "{arguments:?}: {said}");
    }
    let all: Vec<String> = std::iter::once("audit".to_owned())
        .chain([
            "--isolate".to_owned(),
            fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().to_owned(),
        ])
        .collect();
    let result = output(tactus().args(&all));
    assert!(stderr(&result).contains("leaves no CPU"), "{}", stderr(&result));
}

#[test]
fn a_container_and_a_guest_are_audited_from_within_and_end_afterwards() {
    let Some(_turn) = measures_beside_others() else { return };
    let environments = json(&output(tactus().args(["environments", "--json"])));
    for (kind, role) in [("podman", "container"), ("qemu", "guest")] {
        let usable =
            environments.as_array().unwrap().iter().any(|e| e["kind"] == kind && e["usable"] == true);
        if !usable {
            skipped(&format!("{kind} is not usable"));
            continue;
        }
        let result = output(tactus().args(["audit", "--in", kind, "--json", "--fail-on", "never"]));
        assert_eq!(result.status.code(), Some(0), "{kind}: {}", stderr(&result));
        let document = json(&result);
        assert_eq!(document["audits"][0]["role"], role);
        assert_eq!(state(&document, "smt"), "not_applicable", "{kind}: only a host answers for that");
        nothing_is_left();
    }
}

#[test]
fn a_guest_booted_with_isolated_cpus_is_found_to_isolate_them() {
    let Some(_turn) = measures_beside_others() else { return };
    let cmdline = "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0";
    let result = output(tactus().args([
        "audit",
        "--in",
        "qemu",
        "--cmdline",
        cmdline,
        "--json",
        "--fail-on",
        "never",
    ]));
    if result.status.code() != Some(0) {
        return skipped(&stderr(&result));
    }
    let document = json(&result);
    assert_eq!(document["audits"][0]["by"], "boot", "{}", document["audits"][0]["isolated"]);
    for id in ["isolcpus", "rcu-nocbs", "irq-default-affinity"] {
        assert_eq!(state(&document, id), "ok", "{id}");
    }
    nothing_is_left();
}

#[test]
fn a_run_keeps_its_audits_and_they_can_be_made_again_from_its_facts() {
    let Some(_turn) = measures_beside_others() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let run = output(
        tactus().args(["run", "--only", "host idle", "--duration", "1s", "--json", "--out"]).arg(&out),
    );
    let document = json(&run);
    assert_eq!(document["audits"][0]["environment"], "host", "{document:#}");
    let again = output(tactus().args(["audit", "--json", "--fail-on", "never", "--from"]).arg(&out));
    let again = json(&again);
    assert_eq!(again["audits"][0]["environment"], "host");
    for format in ["junit", "markdown", "text"] {
        let made =
            output(tactus().args(["audit", "--format", format, "--fail-on", "never", "--from"]).arg(&out));
        assert_eq!(made.status.code(), Some(0), "{format}: {}", stderr(&made));
        assert!(stdout(&made).contains("preempt-rt"), "{format}");
    }
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("id=\"audit-host\""));
    // A file of facts alone will do; a damaged one is named.
    let facts = out.join("facts/host.json");
    let from_file = output(tactus().args(["audit", "--brief", "--fail-on", "never", "--from"]).arg(&facts));
    assert_eq!(from_file.status.code(), Some(0), "{}", stderr(&from_file));
    let cut = dir.path().join("cut.json");
    fs::write(&cut, &fs::read(&facts).unwrap()[..100]).unwrap();
    let result = output(tactus().args(["audit", "--from"]).arg(&cut));
    assert!(stderr(&result).contains("cut.json") && result.status.code() == Some(2), "{}", stderr(&result));
}

#[test]
fn an_audit_that_could_read_nothing_does_not_pass() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("empty.json");
    for facts in ["{}", r#"{"nothing/known": {"text": "1"}}"#] {
        fs::write(&file, facts).unwrap();
        let result = output(tactus().args(["audit", "--from"]).arg(&file));
        assert_eq!(result.status.code(), Some(3), "{facts}: {}{}", stdout(&result), stderr(&result));
        assert!(stdout(&result).contains("nothing could be judged"), "{}", stdout(&result));
    }
}
