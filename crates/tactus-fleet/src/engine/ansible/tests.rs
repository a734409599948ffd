//! Tests with lines that ansible-core 2.19.14 printed, and with lines that it should never print.

use tactus_system::{Memory, System};

use super::*;
use crate::order::{FORMAT, Order};

fn order(options: &[(&str, &str)]) -> Order {
    Order {
        format: FORMAT,
        tactus: "0.1.0".into(),
        id: "0badcafe".into(),
        started: String::new(),
        engine: "ansible".into(),
        select: "lab".into(),
        options: options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        plan: "lab".into(),
        plan_sha256: "c0ffee".into(),
        arguments: Vec::new(),
        machines: Vec::new(),
    }
}

fn site<'a>(order: &'a Order, system: &'a Memory) -> Site<'a> {
    Site { dir: "/home/ada/fleet".into(), order, system }
}

/// How it is called.
const PLAY: [&str; 5] = ["sh", "-c", LIMITED, "sh", "ansible-playbook"];

const STARTED: &str = r#"[WARNING]: something
TACTUS {"machine": "a", "task": "Have a place", "how": "ok", "said": ""}
TACTUS {"machine": "dead", "task": "Have a place", "how": "unreachable", "said": "Failed to connect to the host via ssh: Connection refused"}
TACTUS {"machine": "b", "task": "Bring the plan", "how": "failed", "said": "Destination directory is not writable"}
TACTUS {"machine": "a", "task": "Measure", "how": "ok", "ansible_job_id": "j617.42", "finished": 0, "said": ""}
TACTUS {"machine": "c", "task": "Measure", "how": "ok", "ansible_job_id": "{{ lookup('pipe','id') }}", "said": ""}
TACTUS {"machine":
"#;

#[test]
fn a_wave_is_one_play_and_each_machine_has_its_own_outcome() {
    let order = order(&[("inventory", "hosts.ini"), ("become", "no")]);
    let system = Memory::new().root().answer(&PLAY, 4, STARTED, "");
    let rows = ["a", "dead", "b", "c", "x:!y"].map(Row::new);
    let outcomes = Ansible.submit(&site(&order, &system), &rows.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(outcomes[0], Submitted::As("j617.42".into()));
    assert!(matches!(&outcomes[1], Submitted::Away(reason) if reason.contains("Connection refused")));
    assert!(matches!(&outcomes[2], Submitted::Refused(reason) if reason.contains("not writable")));
    assert!(matches!(&outcomes[3], Submitted::Refused(_)), "the name of a job is no template");
    assert!(matches!(&outcomes[4], Submitted::Refused(reason) if reason.contains("not a name")));
    assert_eq!(system.calls().len(), 1);
    let call = &system.invocations()[0];
    assert!(call.argv.contains(&"--inventory=hosts.ini".into()), "{:?}", call.argv);
    assert!(call.env.contains(&("ANSIBLE_STDOUT_CALLBACK".into(), "tactus_lines".into())));
    let wave = own_dir(&site(&order, &system)).unwrap().join(WAVE);
    let wave: Value = serde_json::from_str(&system.text(&wave.display().to_string()).unwrap()).unwrap();
    assert_eq!(wave["tactus_machines"], json!(["a", "dead", "b", "c"]), "a pattern is no machine");
    insta::assert_json_snapshot!(wave);
}

#[test]
fn a_job_continues_while_its_machine_cannot_be_reached() {
    let said = r#"TACTUS {"machine": "a", "task": "Ask", "how": "ok", "finished": 0, "said": ""}
TACTUS {"machine": "b", "task": "Ask", "how": "unreachable", "said": "ssh: connect to host b port 22: No route to host"}
TACTUS {"machine": "c", "task": "Ask", "how": "ok", "finished": 1, "rc": 0, "said": ""}
TACTUS {"machine": "d", "task": "Ask", "how": "ok", "finished": true, "rc": 2, "said": "error: no\nhint: yes"}
TACTUS {"machine": "e", "task": "Ask", "how": "ok", "said": "could not find job"}
"#;
    let order = order(&[]);
    let system = Memory::new().root().answer(&PLAY, 4, said, "");
    let rows = ["a", "b", "c", "d", "e", "f"].map(Row::new);
    let states = Ansible.jobs(&site(&order, &system), &rows.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(states["a"], JobState::Running(None));
    assert!(matches!(&states["b"], JobState::Running(Some(reason)) if reason.contains("No route to host")));
    assert_eq!(states["c"], JobState::Ended("exit 0".into()));
    assert_eq!(states["d"], JobState::Ended("exit 2: error: no\nhint: yes".into()));
    assert!(matches!(&states["e"], JobState::Ended(reason) if reason.contains("could not find job")));
    assert!(matches!(&states["f"], JobState::Running(Some(_))));
}

#[test]
fn what_ansible_itself_cannot_do_is_told_in_its_words() {
    let order = order(&[]);
    let system = Memory::new().root().answer(&PLAY, 1, "", "ERROR! the playbook could not be found\n");
    let error = Ansible.jobs(&site(&order, &system), &[&Row::new("a")]).unwrap_err();
    assert!(error.to_string().contains("could not be found"), "{error}");
    assert!(
        Ansible.submit(&site(&order, &Memory::new().root()), &[&Row::new("a")]).is_err(),
        "there is no shell"
    );
    let none =
        Memory::new().root().answer(&PLAY, NOT_FOUND, "", "sh: 1: exec: ansible-playbook: not found\n");
    let error = Ansible.submit(&site(&order, &none), &[&Row::new("a")]).unwrap_err();
    assert!(
        error.to_string().contains("ansible-playbook: sh: 1: exec: ansible-playbook: not found"),
        "{error}"
    );
}

/// Machines of Slurm can write to the directory of a fleet, and to a copy of one of Ansible beside it.
#[test]
fn nothing_that_lies_in_the_directory_of_a_fleet_is_played() {
    let order = order(&[]);
    let planted = ["start.yml", "collect.yml", "callback_plugins/tactus_lines.py", "wave.json"];
    let mut system = Memory::new().root().answer(&PLAY, 4, STARTED, "");
    for file in planted {
        system = system.file(format!("/home/ada/fleet/objects/{file}"), "planted");
    }
    let site = site(&order, &system);
    let own = own_dir(&site).unwrap();
    assert!(!own.starts_with("/home/ada/fleet"));
    for (played, book) in [("jobs", "collect.yml"), ("submit", "start.yml")] {
        for file in planted {
            system.install(&own.join(file), b"of before", 0o600).unwrap();
        }
        let row = Row::new("a");
        match played {
            "jobs" => drop(Ansible.jobs(&site, &[&row]).unwrap()),
            _ => drop(Ansible.submit(&site, &[&row]).unwrap()),
        }
        let call = system.invocations().pop().unwrap();
        assert_eq!(call.argv.last(), Some(&own.join(book).display().to_string()));
        let said = format!("{:?} {:?}", call.argv, call.env);
        assert!(!said.contains("/home/ada/fleet"), "{said}");
        for (file, text) in [(planted[0], START), (planted[1], COLLECT), (planted[2], CALLBACK)] {
            assert_eq!(system.text(&own.join(file).display().to_string()).unwrap(), text, "{file}");
        }
        assert!(system.text(&own.join(WAVE).display().to_string()).unwrap().contains("tactus_machines"));
    }
}

#[test]
fn what_ansible_starts_writes_no_file_that_is_longer_than_a_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    for (mib, ends) in [(1024, true), (1025, false)] {
        let size = format!("seek={mib}");
        let out = format!("of={}", file.display());
        // Holes, but for the last bytes: nothing is really written.
        let words = ["sh", "-c", LIMITED, "sh", "dd", "if=/dev/null", &out, "bs=1M", &size];
        let finished =
            tactus_system::Real.run(&Invocation::new(words).within(Duration::from_secs(60))).unwrap();
        assert_eq!(finished.code == Some(0), ends, "{mib} MiB: {}", finished.words());
    }
}

#[test]
fn hosts_are_those_that_ansible_names_and_a_name_that_breaks_the_list_is_seen() {
    let found = hosts("  hosts (2):\n    a\n    b.example.org\n").unwrap();
    let names: Vec<&str> = found.iter().map(|machine| machine.name.as_str()).collect();
    assert_eq!(names, ["a", "b.example.org"]);
    assert!(hosts("  hosts (1):\n    a\n    b\n").is_err());
    assert_eq!(hosts("  hosts (0):\n").unwrap(), []);
    assert_eq!(hosts("").unwrap(), []);
}

#[test]
fn templates_and_wrong_values_are_refused_before_anything_is_played() {
    let system = Memory::new();
    for (name, value) in
        [("become", "perhaps"), ("forks", "0"), ("dir", "x"), ("program", "{{ x }}"), ("time", "1h")]
    {
        let order = order(&[(name, value)]);
        assert!(Ansible.check(&site(&order, &system)).is_err(), "{name}={value}");
    }
    let mut template = order(&[]);
    template.arguments = vec!["--only={{ lookup('pipe', 'id') }}".into()];
    assert!(Ansible.check(&site(&template, &system)).is_err());
    let order = order(&[("bring", "./tactus"), ("become", "no")]);
    assert!(Ansible.check(&site(&order, &system)).is_ok());
    assert!(Ansible.check(&Site { dir: "/home/{{ x }}".into(), order: &order, system: &system }).is_err());
}
