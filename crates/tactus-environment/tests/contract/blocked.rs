//! `block` by a BPF program in every environment that shares this machine's kernel: with the capabilities that
//! it takes, and without them. How it is in a guest is in `faults.rs`.
#![expect(clippy::print_stderr, reason = "what was heard is said, for who reads the test")]

use std::time::Duration;

use serde_json::json;
use tactus_environment::Usable;
use tactus_model::catalogue::fault::{BlockWay, Off};
use tactus_model::message::NoteKind;
use tactus_model::plan;

use super::conversation::Conversation;
use super::faults::{Heard, block, cpus, job, perform, prepare, with};
use super::{alone, leftovers, places, skipped};

/// Kinds that share this machine's kernel and are started here.
const KINDS: [&str; 6] = ["host", "podman", "docker", "oci", "lxc", "nspawn"];

fn given(spec: &plan::Environment) -> plan::Environment {
    let engine = ("engine".to_owned(), json!({"capabilities": ["BPF", "PERFMON"]}));
    plan::Environment { options: spec.options.clone().into_iter().chain([engine]).collect(), ..spec.clone() }
}

#[test]
fn a_block_in_an_environment_of_this_kernel_takes_the_capabilities_that_its_table_gives_it() {
    let _turn = alone();
    for kind in KINDS {
        let environment = tactus_environment::find(kind).unwrap();
        let place = places::of(kind);
        if let Usable::No { reason, .. } = environment.usable_as(&place.spec, &*places::system(&place.spec)) {
            skipped(&format!("{kind}: {reason}"));
            continue;
        }
        let spec = if kind == "host" { place.spec.clone() } else { given(&place.spec) };
        environment.check(&spec, &*places::system(&spec)).unwrap();
        let mut talk =
            Conversation::begin(environment, &spec).unwrap_or_else(|error| panic!("{kind}: {error}"));
        talk.greet();
        drop(talk.running.after_hello().unwrap());
        let fault = block(Off::Interrupts, Some(BlockWay::Bpf));
        let blocked = with(fault.clone(), "1", job(Duration::from_secs(3)));
        let heard = perform(&mut talk, blocked).unwrap_or_else(|refusal| panic!("{kind}: {refusal:?}"));
        is_the_programs_own_account(kind, &heard);
        end(kind, talk);
        if kind == "host" {
            continue;
        }
        let mut talk = Conversation::begin(environment, &place.spec).unwrap();
        talk.greet();
        drop(talk.running.after_hello().unwrap());
        let refusal = prepare(&mut talk, with(fault, "1", job(Duration::from_secs(1)))).unwrap_err();
        eprintln!("{kind}: {}", refusal.reason);
        let lacks = ["no CAP_BPF and no CAP_PERFMON", "filter of system calls"];
        assert!(lacks.iter().any(|why| refusal.reason.contains(why)), "{kind}: {refusal:?}");
        assert!(
            refusal.hint.unwrap().contains("engine = { capabilities = [\"BPF\", \"PERFMON\"] }"),
            "{kind}"
        );
        end(kind, talk);
    }
}

fn is_the_programs_own_account(kind: &str, heard: &Heard) {
    let [injected] = &heard.injected[..] else { panic!("{kind}: {:?}", heard.injected) };
    eprintln!("{kind}: {injected:?} {:?}", heard.blocks);
    // On some kernels it takes something that keeps the CPU from idling.
    let ways = ["BPF program", "BPF program, CPU 1 kept from idling"];
    assert!(ways.contains(&&*injected.way), "{kind}: {injected:?}");
    assert_eq!(injected.cpus, cpus("1"), "{kind}");
    let times = injected.times.unwrap();
    assert!((3..=6).contains(&times), "{kind}: every 500 ms for 3 s: {injected:?}");
    assert!(injected.longest_ns.unwrap() >= injected.length_ns, "{kind}: {injected:?}");
    let (there, elsewhere) = (heard.blocks[1].len(), heard.blocks[0].len());
    assert!(there * 2 > usize::try_from(times).unwrap(), "{kind}: {times} times, seen {:?}", heard.blocks);
    assert!(elsewhere < there, "{kind}: on the other CPU, too: {:?}", heard.blocks);
    assert!(
        heard.notes.iter().all(|note| note.kind != NoteKind::Obstacle || !note.text.contains("block")),
        "{kind}"
    );
}

fn end(kind: &str, talk: Conversation) {
    let id = talk.id().to_owned();
    talk.end();
    leftovers::none_within(&id, Duration::from_secs(5)).unwrap_or_else(|left| panic!("{kind} leaves {left}"));
}
