//! Rules for every kind of environment, on this machine: with the real Podman, crun and QEMU. An environment that
//! cannot be used here is skipped aloud; where `TACTUS_TEST_ALL` is set (as CI does) that is a failure.
#![expect(clippy::disallowed_methods, reason = "these tests look at the machine from outside the door")]

mod altered;
mod attach;
mod blocked;
mod clock;
mod conversation;
mod docker;
mod domains;
mod faults;
mod jailhouse;
mod killed;
mod leftovers;
mod libvirtd;
mod loads;
mod places;
mod running;
mod serial;
mod ssh;
mod sshd;
mod victim;

use std::process::Command;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use conversation::{Conversation, PATIENCE};
use places::Place;
use tactus_environment::{ENVIRONMENTS, Environment, Usable};
use tactus_model::Evidence;
use tactus_model::message::{End, FromProbe, ToProbe};
use tactus_model::plan;
use tactus_system::Real;

static TURN: RwLock<()> = RwLock::new(());

/// The machine for one test: what it measures or loads would disturb others, or they it.
fn alone() -> RwLockWriteGuard<'static, ()> {
    TURN.write().unwrap_or_else(PoisonError::into_inner)
}

/// The machine for a test that mostly waits, and for others like it: whatever they leave each other of the CPUs, it
/// holds. Once a test: who asks twice waits for somebody who waits for him.
fn beside_others() -> RwLockReadGuard<'static, ()> {
    TURN.read().unwrap_or_else(PoisonError::into_inner)
}

/// Tries the environments of this machine whose kind is wanted, each in a separate place, which exists during the
/// test. Most of them wait (for a daemon, for a guest that boots), so some run at once.
fn everywhere(wanted: impl Fn(&str) -> bool + Sync, test: impl Fn(&'static dyn Environment, &Place) + Sync) {
    let left = Mutex::new(ENVIRONMENTS.iter().filter(|environment| wanted(environment.kind())));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let some = || {
        while let Some(environment) = next() {
            let place = places::of(environment.kind());
            match environment.usable_as(&place.spec, &*places::system(&place.spec)) {
                Usable::Yes { .. } => test(*environment, &place),
                Usable::No { reason, remedy } => {
                    skipped(&format!("{}: {reason}; {remedy}", environment.kind()));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(some);
        }
    });
}

/// Environments that are tried at once.
const AT_ONCE: usize = 3;

#[expect(clippy::print_stderr, reason = "a test that could not be done says so")]
fn skipped(why: &str) {
    assert!(std::env::var_os("TACTUS_TEST_ALL").is_none(), "skipped, and TACTUS_TEST_ALL is set: {why}");
    eprintln!("skipped: {why}");
}

fn qemu() -> Option<&'static (dyn Environment + Sync)> {
    let qemu = ENVIRONMENTS.iter().find(|environment| environment.kind() == "qemu")?;
    match qemu.usable(&Real) {
        Usable::Yes { .. } => Some(*qemu),
        Usable::No { reason, remedy } => {
            skipped(&format!("qemu: {reason}; {remedy}"));
            None
        }
    }
}

fn spec(kind: &str, options: &[(&str, &str)]) -> plan::Environment {
    let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    plan::Environment { kind: kind.into(), options, ..plan::Environment::default() }
}

#[test]
fn every_environment_measures_and_has_last_words_when_its_probe_dies() {
    let _turn = alone();
    everywhere(
        |_| true,
        |environment, place| {
            let kind = environment.kind();
            let mut talk = Conversation::begin(environment, &place.spec)
                .unwrap_or_else(|error| panic!("{kind}: {error}"));
            let facts = talk.greet();
            // Without an operating system the processor itself is asked.
            let told = match environment.has_system() {
                true => ["/proc/version", "/proc/cmdline"],
                false => ["cpuid:0x1:0", "bare:clock"],
            };
            assert!(told.iter().any(|name| facts.text(name).is_some()), "{kind}: {facts:?}");
            let evidence = talk.running.evidence(&facts);
            assert_ne!(evidence, Evidence::Imported, "{kind}");
            for note in talk.running.after_hello().unwrap() {
                eprintln!("{kind}: {:?}: {}", note.kind, note.text);
            }
            talk.measure_for(Duration::from_millis(300));
            let (mut ticks, mut cycles) = (0, 0);
            loop {
                match talk.hear(PATIENCE) {
                    FromProbe::Tick(tick) => {
                        ticks += 1;
                        cycles += tick.now.cycles;
                        let nothing = tick.now.cycles == 0;
                        assert!(nothing || tick.now.min_ns <= tick.now.max_ns, "{kind}: {tick:?}");
                    }
                    FromProbe::Done(done) => {
                        assert_eq!(done.end, End::Complete, "{kind}: {:?}", done.reason);
                        break;
                    }
                    FromProbe::Note(note) => eprintln!("{kind}: {:?}: {}", note.kind, note.text),
                    _ => {}
                }
            }
            assert!(ticks >= 2 && cycles >= 10, "{kind}: {ticks} ticks, {cycles} cycles");
            let id = talk.id().to_owned();
            // The probe itself, or what executes it.
            for pid in leftovers::marked(&id) {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
                if program.to_string_lossy().contains("probe") || name.starts_with("qemu") {
                    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
                    assert!(killed.success(), "{kind}: {name}");
                }
            }
            assert!(talk.hears_the_end(), "{kind}: the stream goes on");
            let words = talk.running.last_words().unwrap_or_default();
            eprintln!("{kind}: {words}");
            assert!(words.len() > 8, "{kind}: {words:?}");
            talk.end();
            leftovers::none_within(&id, Duration::from_secs(5))
                .unwrap_or_else(|left| panic!("{kind} leaves {left}"));
        },
    );
}

#[test]
fn a_run_that_is_killed_leaves_nothing_behind() {
    if let Ok(kind) = std::env::var(victim::VICTIM) {
        victim::be_killed(&kind);
    }
    let _turn = alone();
    everywhere(
        |_| true,
        |environment, place| {
            let kind = environment.kind();
            let id = victim::is_killed(kind, &place.spec, |id| !leftovers::marked(id).is_empty());
            leftovers::none_within(&id, Duration::from_secs(25))
                .unwrap_or_else(|left| panic!("{kind} leaves {left}"));
        },
    );
}

#[test]
fn a_guest_that_panics_ends_with_the_panic() {
    let _turn = beside_others();
    let Some(qemu) = qemu() else { return };
    let spec = spec("qemu", &[("cmdline", "rdinit=/nowhere root=/dev/none")]);
    let Err(error) = Conversation::begin(qemu, &spec) else { panic!("there is no init to boot into") };
    assert!(error.reason.contains("ended before its first message"), "{error}");
    assert!(error.reason.contains("Kernel panic"), "{error}");
}

#[test]
fn a_guest_that_says_nothing_is_given_up_with_its_console() {
    let _turn = beside_others();
    let Some(qemu) = qemu() else { return };
    let Err(error) = Conversation::begin(qemu, &spec("qemu", &[("accel", "tcg"), ("boot_timeout", "300ms")]))
    else {
        panic!("no guest boots that fast")
    };
    assert!(error.reason.contains("sent nothing for 0.3 s"), "{error}");
    assert!(error.reason.contains("console"), "{error}");
    assert!(error.hint.is_some());
}

#[test]
fn a_guest_that_is_silent_under_kvm_is_started_again_under_emulation() {
    let _turn = beside_others();
    let Some(qemu) = qemu() else { return };
    // So short that no guest has spoken yet, whether KVM works here, hangs or is not there.
    let spec = spec("qemu", &[("boot_timeout", "1ms")]);
    let mut talk = Conversation::begin_on(&altered::Altered::claims_kvm(), qemu, &spec).unwrap();
    let facts = talk.greet();
    assert_eq!(talk.running.evidence(&facts), Evidence::Emulated);
    let notes = talk.running.after_hello().unwrap();
    assert!(notes.iter().any(|note| note.text.contains("did not start under KVM")), "{notes:?}");
    let id = talk.id().to_owned();
    talk.end();
    leftovers::none_within(&id, Duration::from_secs(5)).unwrap_or_else(|left| panic!("qemu leaves {left}"));
}

#[test]
fn what_qemu_refuses_is_told_in_its_words() {
    let _turn = beside_others();
    let Some(qemu) = qemu() else { return };
    let Err(error) = Conversation::begin(qemu, &spec("qemu", &[("memory", "16777215GiB")])) else {
        panic!("no machine has that much")
    };
    assert!(error.reason.contains("memory"), "{error}");
}

#[test]
fn garbage_to_the_probe_does_not_end_it() {
    let _turn = beside_others();
    let host = ENVIRONMENTS.iter().find(|environment| environment.kind() == "host").unwrap();
    let mut talk = Conversation::begin(*host, &spec("host", &[])).unwrap();
    talk.greet();
    talk.write(b"\x00\xffnot a frame\n{\"q\":1}\n");
    talk.say(&ToProbe::Stop);
    talk.measure_for(Duration::from_millis(50));
    while !matches!(talk.hear(PATIENCE), FromProbe::Done(_)) {}
    talk.end();
}
