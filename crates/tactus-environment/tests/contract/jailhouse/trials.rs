//! Trials of a cell in which things go wrong.

use super::super::conversation::{Conversation, PATIENCE};
use super::super::{beside_others, leftovers};
use super::board::{Board, CELL};
use std::time::{Duration, Instant};
use tactus_environment::{ENVIRONMENTS, Environment, StartError};
use tactus_model::message::{End, FromProbe, NoteKind, ToProbe};
use tactus_model::plan;
use tactus_system::{Invocation, Real, System};

fn jailhouse() -> &'static (dyn Environment + Sync) {
    *ENVIRONMENTS.iter().find(|environment| environment.kind() == "jailhouse").unwrap()
}

fn begin(board: &Board, spec: &plan::Environment) -> Result<Conversation, StartError> {
    Conversation::begin_on(&board.system(), jailhouse(), spec)
}

fn refused(board: &Board, spec: &plan::Environment) -> String {
    let Err(error) = begin(board, spec) else { panic!("it started") };
    assert!(error.hint.as_ref().is_some_and(|hint| !hint.is_empty()), "{error}");
    format!("{}; {}", error.reason, error.hint.unwrap())
}

/// Does to the board what somebody else would.
fn told(board: &Board, words: &[&str]) {
    let words = std::iter::once(board.path("jailhouse")).chain(words.iter().map(|word| (*word).to_owned()));
    let finished = Real.run(&Invocation::new(words.collect::<Vec<_>>())).unwrap();
    assert!(finished.success(), "{}", finished.words());
}

fn off(board: &Board) {
    assert_eq!((board.sysfs("enabled"), board.cells()), ("0".into(), Vec::new()));
}

/// Without an inmate that could speak.
fn silent() -> Board {
    let board = Board::new();
    board.inmate_script("#!/bin/sh\nexec sleep 600\n");
    board
}

#[test]
fn what_jailhouse_refuses_is_told_and_taken_back() {
    let _turn = beside_others();
    let board = silent();
    let spec = board.spec();
    // Memory that is in use, and a configuration of another revision: one error, told apart by the driver's words.
    std::fs::write(board.dir.join("not-set-aside"), "").unwrap();
    let said = refused(&board, &spec);
    assert!(
        said.contains("JAILHOUSE_ENABLE: Invalid argument; its driver said: request_mem_region failed for")
            && said.contains("is reserved for the hypervisor: boot with mem="),
        "{said}"
    );
    off(&board);
    std::fs::remove_file(board.dir.join("not-set-aside")).unwrap();
    board.system_config_of(14, "newer.cell", "board", 1);
    let mut newer = spec.clone();
    newer.options.insert("system".into(), board.path("cells/newer.cell").into());
    let said = refused(&board, &newer);
    assert!(
        said.contains("its driver said: Configuration revision mismatch; the configuration is of"),
        "{said}"
    );
    assert!(!said.contains("request_mem_region"), "what was logged before is not of this: {said}");
    off(&board);
    // A system that has more CPUs than this one: nothing is logged.
    board.system_config("large.cell", "board", 1 << 62);
    let mut large = spec.clone();
    large.options.insert("system".into(), board.path("cells/large.cell").into());
    let said = refused(&board, &large);
    assert!(said.contains("for other CPUs") && !said.contains("its driver said"), "{said}");
    off(&board);

    // Refusals of the helper of `cell linux`, and its absence.
    std::fs::write(board.dir.join("no-space"), "").unwrap();
    assert!(refused(&board, &spec).contains("do not fit into the memory regions"));
    off(&board);
    std::fs::remove_file(board.dir.join("no-space")).unwrap();
    std::fs::write(board.dir.join("inmate.dts"), "/dts-v1/;").unwrap();
    let mut source = spec.clone();
    source.options.insert("dtb".into(), board.path("inmate.dts").into());
    assert!(refused(&board, &source).contains("is not a compiled device tree"));
    off(&board);
    std::fs::remove_file(board.dir.join("jailhouse-cell-linux")).unwrap();
    assert!(refused(&board, &spec).contains("lacks its helper jailhouse-cell-linux"));
    let board = silent();
    let spec = board.spec();

    // A configuration with other CPUs than those of the plan.
    board.cell_config("other.cell", "other", 1 << 40);
    let mut other = spec.clone();
    other.options.insert("cell".into(), board.path("cells/other.cell").into());
    let said = refused(&board, &other);
    assert!(
        said.contains("the cell other has CPUs 40 in its configuration") && said.contains("cpus = \"40\""),
        "{said}"
    );
    off(&board);

    // A console that does not exist.
    let mut nobody = spec;
    nobody.options.insert("console".into(), board.path("nosuch").into());
    assert!(refused(&board, &nobody).contains("nosuch"));
    off(&board);
}

#[test]
fn a_jailhouse_that_was_enabled_is_left_enabled_with_the_cells_of_others() {
    let _turn = beside_others();
    let board = silent();
    let spec = board.spec();
    told(&board, &["enable", &board.path("cells/system.cell")]);
    board.cell_config("theirs.cell", "theirs", 1 << 41);
    told(&board, &["cell", "create", &board.path("cells/theirs.cell")]);

    let mut talk = begin(&board, &spec).unwrap();
    assert_eq!(board.cells(), ["board", "theirs", CELL]);
    let notes = talk.running.after_hello().unwrap();
    assert!(notes.iter().any(|note| note.text.contains("stays so")), "{notes:?}");
    assert!(talk.running.last_words().unwrap().contains("running"));
    talk.end();
    assert_eq!((board.sysfs("enabled"), board.cells()), ("1".into(), vec!["board".into(), "theirs".into()]));

    // One that has taken the CPUs, and one of the same name.
    board.cell_config("greedy.cell", "greedy", 1);
    told(&board, &["cell", "create", &board.path("cells/greedy.cell")]);
    let said = refused(&board, &spec);
    assert!(
        said.contains("JAILHOUSE_CELL_CREATE: Device or resource busy") && said.contains("has a CPU"),
        "{said}"
    );
    told(&board, &["cell", "destroy", "greedy"]);
    told(&board, &["cell", "create", &board.path("cells/linux.cell")]);
    let said = refused(&board, &spec);
    assert!(
        said.contains("already exists, and does not belong to this run") && board.cells().len() == 3,
        "{said}"
    );
    told(&board, &["cell", "destroy", CELL]);

    // One that locks the others out.
    told(&board, &["cell", "load", "theirs", "lock-demo.bin"]);
    told(&board, &["cell", "start", "theirs"]);
    let said = refused(&board, &spec);
    assert!(said.contains("Operation not permitted") && said.contains("(theirs): running/locked"), "{said}");
    assert_eq!(board.cells(), ["board", "theirs"]);
}

#[test]
fn a_cell_that_refuses_its_end_once_is_asked_again() {
    let _turn = beside_others();
    let board = silent();
    let talk = begin(&board, &board.spec()).unwrap();
    std::fs::write(board.dir.join("refuse"), format!("{CELL}\n")).unwrap();
    talk.end();
    off(&board);
}

#[test]
fn a_cell_that_refuses_its_end_for_good_is_left_and_named() {
    let _turn = beside_others();
    let board = silent();
    let talk = begin(&board, &board.spec()).unwrap();
    std::fs::write(board.dir.join("refuse"), format!("{CELL}\n")).unwrap();
    std::fs::write(board.dir.join("stubborn"), "").unwrap();
    let said = talk.end();
    let says =
        |words: &str| said.iter().any(|note| note.kind == NoteKind::Obstacle && note.text.contains(words));
    assert!(says("refuses to be destroyed") && says("Jailhouse stays enabled"), "{said:?}");
    assert_eq!((board.sysfs("enabled"), board.cells()), ("1".into(), vec!["board".into(), CELL.into()]));
    std::fs::remove_file(board.dir.join("stubborn")).unwrap();
    std::fs::remove_file(board.dir.join("refuse")).unwrap();
}

#[test]
fn a_cell_of_which_a_cpu_was_parked_ends_the_stream_and_is_reported_with_the_cause() {
    let _turn = beside_others();
    let board = Board::new();
    board.inmate_script("#!/bin/sh\nsleep 1\nexit 3\n");
    let mut talk = begin(&board, &board.spec()).unwrap();
    assert!(talk.hears_the_end());
    let cpus = board.sysfs("cells/1/cpus_assigned_list");
    let words = talk.running.last_words().unwrap();
    // As long as another CPU is left the cell "runs".
    let state = if cpus == "0" { "failed" } else { "running" };
    for cause in [
        &format!("(linux-demo): {state}"),
        "stopped CPUs 0",
        "Unhandled data read at 0xa003fe0(4)",
        "FATAL: unhandled trap (exception class 0x24)",
        "Parking CPU 0",
    ] {
        assert!(words.contains(cause), "{cause}: {words}");
    }
    talk.end();
    off(&board);
}

#[test]
fn a_kernel_that_panics_ends_the_stream_though_its_cell_runs_and_an_older_panic_does_not() {
    let _turn = beside_others();
    let board = Board::new();
    let panic = "printf '%s\\r\\n' '---[ end Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b ]---'";
    let mut spec = board.spec();
    spec.options.insert("console".into(), "hypervisor".into());
    // The ring still has one of a cell that is gone.
    let ring = board.path("ring");
    told(&board, &["enable", &board.path("cells/system.cell")]);
    let run = |script: String| assert!(Real.run(&Invocation::new(["sh", "-c", &script])).unwrap().success());
    run(format!("{panic} >>{ring}"));
    board.inmate_script(&format!("#!/bin/sh\nsleep 3\n{panic} >>{ring}\nexec sleep 600\n"));
    let began = Instant::now();
    let mut talk = begin(&board, &spec).unwrap();
    assert!(talk.hears_the_end());
    assert!(began.elapsed() > Duration::from_secs(3), "the older one has ended it");
    let words = talk.running.last_words().unwrap();
    assert!(
        words.starts_with("the inmate's kernel has panicked") && words.contains("(linux-demo): running"),
        "{words}"
    );
    assert_eq!(words.matches("Attempted to kill init").count(), 2, "each is quoted once: {words}");
    talk.end();
    told(&board, &["disable"]);
    off(&board);
}

#[test]
fn a_cell_takes_its_cpus_off_line_and_gives_them_back() {
    let _turn = beside_others();
    let board = silent();
    let spec = board.spec();
    told(&board, &["enable", &board.path("cells/system.cell")]);
    let before = board.online();
    let talk = begin(&board, &spec).unwrap();
    assert_eq!(board.online(), "40-41");
    let cell = board.sysfs("cells/1/cpus_assigned_list").parse().unwrap();
    let owner = jailhouse().owner(&cell, &board.system()).unwrap();
    assert!(
        owner.contains("(linux-demo): running") && owner.contains("jailhouse cell destroy linux-demo"),
        "{owner}"
    );
    talk.end();
    assert_eq!((board.online(), jailhouse().owner(&cell, &board.system())), (before, None));
    told(&board, &["disable"]);
}

#[test]
fn a_cell_that_says_everything_twice_is_told_why() {
    let _turn = beside_others();
    let board = Board::new();
    std::fs::write(board.dir.join("twice"), "").unwrap();
    board.inmate_script(
        "#!/usr/bin/env python3\nimport os, socket, time\nline = socket.socket(socket.AF_UNIX)\n\
line.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'uart.inmate'))\n\
while True:\n    line.sendall(b'Timer fired, jitter: 241499 ns\\r\\n')\n    time.sleep(0.2)\n",
    );
    let mut talk = begin(&board, &board.spec()).unwrap();
    let until = Instant::now() + PATIENCE;
    loop {
        let words = talk.running.last_words().unwrap();
        if words.contains("TTiimmeerr  ffiirreedd") && words.contains("VIRTUAL_CONSOLE_ACTIVE") {
            break;
        }
        assert!(Instant::now() < until, "{words}");
        std::thread::sleep(Duration::from_millis(200));
    }
    talk.end();
    off(&board);
}

#[test]
fn an_inmate_that_hears_nothing_is_booted_with_its_job() {
    let _turn = beside_others();
    let board = Board::new();
    // Its log goes to the ring that `console -f` follows.
    board.inmate("-chardev file,id=ring,path=$here/ring,append=on -serial chardev:ring");
    let mut spec = board.spec();
    spec.options.insert("console".into(), "hypervisor".into());
    // As the hypervisor's: printk goes there, and no program can open it. PID 1 begins without descriptors.
    spec.options.insert("cmdline".into(), "earlyprintk=serial,ttyS0,115200,keep panic=-1".into());
    if let tactus_environment::Usable::No { reason, remedy } = jailhouse().usable_as(&spec, &board.system()) {
        super::super::skipped(&format!("{reason}; {remedy}"));
        return;
    }
    let mut talk = begin(&board, &spec).unwrap_or_else(|error| panic!("{error}"));
    let id = talk.id().to_owned();
    talk.greet();
    let notes = talk.running.after_hello().unwrap();
    assert!(notes.iter().any(|note| note.text.contains("carries no input to the inmate")), "{notes:?}");
    talk.measure_for(Duration::from_secs(600));
    talk.running.measuring();
    let mut ticks = 0;
    while ticks < 3 {
        match talk.hear(PATIENCE) {
            FromProbe::Tick(tick) => ticks += u32::from(tick.now.cycles > 0),
            FromProbe::Note(note) if note.kind == NoteKind::Obstacle => eprintln!("{}", note.text),
            FromProbe::Done(done) => panic!("{done:?}"),
            _ => {}
        }
    }
    let counted = talk.running.measured();
    // The counters are read one by one while they rise, so that the kinds of one CPU may be more than its sum.
    let cells = || counted.iter().filter(|note| note.text.starts_with("cell linux-demo: CPU "));
    assert_eq!(
        cells().filter(|note| note.text.contains(" entered the hypervisor ")).count(),
        2,
        "{counted:?}"
    );
    assert!(cells().any(|note| note.text.contains("of unknown kind ")), "{counted:?}");
    // To stop it is to shut its cell down; what it had measured stays.
    talk.say(&ToProbe::Stop);
    let done = loop {
        if let FromProbe::Done(done) = talk.hear(PATIENCE) {
            break done;
        }
    };
    assert!(done.end == End::Stopped && done.measured_ns >= 100_000_000, "{done:?}");
    assert_eq!(board.sysfs("cells/1/state"), "shut down");
    talk.end();
    off(&board);
    leftovers::none_within(&id, Duration::from_secs(5)).unwrap_or_else(|left| panic!("left: {left}"));
}
