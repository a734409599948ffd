//! Tests with lines that sinfo, squeue and sacct of Slurm 22.05.8 printed, and with lines that they should never
//! print.

use tactus_system::Memory;

use super::*;
use crate::order::{FORMAT, Order};

const SINFO: &str = "\
n1|idle|rt,ib|none
n1|idle|rt,ib|none
n2|allocated|rt|none
n3|drained|rt|bad disk | see #7
n4|down*|rt|Not responding
n5|mixed|gpu|none
n6|idle*|rt|none
n7|unknown|rt|none
broken line
";

fn order(select: &str) -> Order {
    Order {
        format: FORMAT,
        tactus: "0.1.0".into(),
        id: "0badcafe".into(),
        started: String::new(),
        engine: "slurm".into(),
        select: select.into(),
        options: BTreeMap::new(),
        plan: "lab".into(),
        plan_sha256: "c0ffee".into(),
        arguments: Vec::new(),
        machines: Vec::new(),
    }
}

fn site<'a>(order: &'a Order, system: &'a Memory) -> Site<'a> {
    Site { dir: "/shared/fleet".into(), order, system }
}

fn row(machine: &str, job: &str) -> Row {
    Row { job: Some(job.into()), attempts: 1, ..Row::new(machine) }
}

#[test]
fn nodes_are_idle_busy_or_away_with_slurms_own_reason() {
    let found = machines(SINFO, Some("rt"));
    let told: Vec<String> =
        found.iter().map(|machine| format!("{} {:?}", machine.name, machine.ready)).collect();
    assert_eq!(
        told,
        [
            "n1 Idle",
            "n2 Busy(\"allocated\")",
            "n3 Away(\"drained: bad disk | see #7\")",
            "n4 Away(\"down*: Not responding\")",
            "n6 Away(\"idle*: it does not answer\")",
            "n7 Busy(\"unknown\")",
        ]
    );
}

#[test]
fn a_selection_is_given_to_sinfo_as_separate_words() {
    let order = order("partition=lab feature=rt nodes=n[1-4],n7");
    let system = Memory::new().answer(&["sinfo"], 0, SINFO, "");
    assert_eq!(Slurm.machines(&site(&order, &system)).unwrap().len(), 6);
    let argv = system.calls().remove(0);
    assert_eq!(&argv[4..], ["--partition=lab", "--nodes=n[1-4],n7"]);
    for wrong in ["partition=", "partition=-x", "feature=a;id", "node=n1", "nodes=$(id)", "n1"] {
        assert!(Selection::of(wrong).is_err(), "{wrong}");
    }
    assert_eq!(Selection::of("all").unwrap(), Selection::default());
}

#[test]
fn jobs_are_known_by_their_number_and_not_by_their_name() {
    let squeue = "\
7|tactus-0badcafe-n1|COMPLETED|None
9|tactus-0badcafe-n1|PENDING|BeginTime
8|tactus-0badcafe-n2|NODE_FAIL|None
10|tactus-0badcafe-n3|PENDING|ReqNodeNotAvail, UnavailableNodes:n3
11|tactus-00000000-n4|RUNNING|None
12|tactus-0badcafe-n5|RUNNING|None
13|other|weird
14|tactus-0badcafe-n2|RUNNING|None
";
    let order = order("all");
    // Of all users' jobs one is called so that it prints a line of another number.
    let all = "9|x\n9|tactus-0badcafe-n1|COMPLETED|None\n";
    let mine = ["squeue", "--noheader", "--states=all", "--format=%i|%j|%T|%r", "--me"];
    let system = Memory::new().answer(&["squeue"], 0, all, "").answer(&mine, 0, squeue, "").answer(
        &["sacct"],
        1,
        "",
        "Slurm accounting storage is disabled\n",
    );
    let rows = [row("n1", "9"), row("n2", "8"), row("n3", "10"), row("n4", "11"), row("n5", "12")];
    let states = Slurm.jobs(&site(&order, &system), &rows.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(states["n1"], JobState::Waiting("PENDING (BeginTime)".into()));
    assert_eq!(states["n2"], JobState::Ended("NODE_FAIL".into()));
    assert_eq!(states["n3"], JobState::Waiting("PENDING (ReqNodeNotAvail, UnavailableNodes:n3)".into()));
    let JobState::Ended(reason) = &states["n4"] else { panic!("another fleet's job: {states:?}") };
    assert!(reason.contains("no longer knows job 11"), "{reason}");
    assert_eq!(states["n5"], JobState::Running(None));
}

#[test]
fn what_the_controller_forgot_accounting_knows() {
    let order = order("all");
    let system =
        Memory::new().answer(&["squeue"], 0, "", "").answer(&["sacct"], 0, "CANCELLED by 0|0:15\n", "");
    let states = Slurm.jobs(&site(&order, &system), &[&row("n1", "7")]).unwrap();
    assert_eq!(states["n1"], JobState::Ended("CANCELLED (exit 0:15)".into()));
}

#[test]
fn a_job_that_slurm_has_already_is_not_given_twice() {
    let order = order("all");
    let system = Memory::new()
        .answer(
            &["squeue"],
            0,
            "7|tactus-0badcafe-n1|PENDING|Resources\n6|tactus-0badcafe-n2|FAILED|NonZeroExitCode\n",
            "",
        )
        .answer(&["sbatch"], 0, "8;cluster\n", "");
    let rows = [Row::new("n1"), Row::new("n2")];
    let submitted = Slurm.submit(&site(&order, &system), &rows.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(submitted, [Submitted::As("7".into()), Submitted::As("8".into())]);
}

#[test]
fn a_job_of_another_user_that_has_the_name_of_ours_keeps_no_machine_from_its_own() {
    let order = order("all");
    let mine = ["squeue", "--noheader", "--states=all", "--format=%i|%j|%T|%r", "--me"];
    let system = Memory::new()
        .answer(&["squeue"], 0, "7|tactus-0badcafe-n1|PENDING|JobHeldUser\n", "")
        .answer(&mine, 0, "", "")
        .answer(&["sbatch"], 0, "8\n", "");
    let submitted = Slurm.submit(&site(&order, &system), &[&Row::new("n1")]).unwrap();
    assert_eq!(submitted, [Submitted::As("8".into())]);
}

#[test]
fn refusals_of_sbatch_are_told_and_a_name_that_is_a_list_is_refused() {
    let order = order("all");
    let system = Memory::new().answer(&["squeue"], 0, "", "").answer(
        &["sbatch"],
        1,
        "",
        "sbatch: error: Batch job submission failed: Invalid qos specification\n",
    );
    let rows = [Row::new("n1"), Row::new("n[1-400]"), Row::new("-w"), Row::new("a\nb"), Row::new("$(id)")];
    let submitted = Slurm.submit(&site(&order, &system), &rows.iter().collect::<Vec<_>>()).unwrap();
    let Submitted::Refused(reason) = &submitted[0] else { panic!("{submitted:?}") };
    assert!(reason.contains("Invalid qos"), "{reason}");
    for refused in &submitted[1..] {
        assert!(
            matches!(refused, Submitted::Refused(reason) if reason.contains("not a name")),
            "{refused:?}"
        );
    }
    assert_eq!(system.calls().iter().filter(|call| call[0] == "sbatch").count(), 1);
}

#[test]
fn a_batch_script_is_a_job_of_one_node_by_its_name() {
    let mut order = order("partition=lab");
    order.options = [("account".into(), "rt".into()), ("program".into(), "/opt/tactus".into())].into();
    order.arguments = vec!["--quick".into(), "--only=it's".into()];
    let system = Memory::new();
    insta::assert_snapshot!(batch(&site(&order, &system), &Row::new("n1")));
}

#[test]
fn a_hostile_name_gives_no_line_to_sbatch_and_no_command_to_the_shell() {
    let order = order("all");
    let system = Memory::new();
    for name in ["../../x", "$(id)", "a\n#SBATCH --uid=0\nid", "-w", "x'; id; '", "n[1-9]"] {
        let text = batch(&site(&order, &system), &Row::new(name));
        // sbatch reads no options behind the first command.
        let options: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(options.contains(&"#SBATCH --nodelist=no-such-node"), "{name:?}: {text}");
        assert!(!options.iter().any(|line| line.starts_with("#SBATCH --uid")), "{text}");
        let named = format!("TACTUS_MACHINE={}\n", quoted(&as_told(name)));
        assert!(text.contains(&named), "{name:?}: {text}");
    }
}

#[test]
fn options_that_are_more_than_a_word_and_unknown_ones_are_refused() {
    let system = Memory::new();
    for (name, value) in
        [("account", "a\n#SBATCH --x"), ("time", ""), ("qos", "-x"), ("shell", "sh"), ("program", "a'b")]
    {
        let mut order = order("all");
        order.options = [(name.to_owned(), value.to_owned())].into();
        assert!(Slurm.check(&site(&order, &system)).is_err(), "{name}={value}");
    }
    let order = order("all");
    assert!(Slurm.check(&Site { dir: "/a/%j".into(), order: &order, system: &system }).is_err());
    assert!(Slurm.check(&site(&order, &system)).is_ok());
}
