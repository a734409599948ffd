//! A user's libvirt domain: any text is read without a panic, and what `generate --patch` makes of it is a domain that it
//! would not change again.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::{Corpus, fuzz_target};
use tactus_audit::{Intent, Subject};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_tune::generate::libvirt::{Tree, patch};
use tactus_tune::generate::{Accel, GenerateRequest, GuestOptions, Size, of_check};

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((choice, text)) = data.split_first() else { return Corpus::Reject };
    let Ok(text) = std::str::from_utf8(text) else { return Corpus::Reject };
    if let Ok(tree) = Tree::parse(text) {
        for element in &tree.elements {
            assert!(text.get(element.span()).is_some_and(|own| own.starts_with('<') && own.ends_with('>')));
        }
    }
    let facts = machine();
    let intent = Intent { isolated: "2-7".parse().ok(), ..Intent::default() };
    let subject = Subject::new(&facts, Role::Host, &intent);
    let options = GuestOptions {
        vcpus: (choice & 1 == 1).then_some(2),
        memory: (choice & 2 == 2).then_some(Size(1 << 30)),
        accel: [None, Some(Accel::Kvm), Some(Accel::Tcg)][usize::from(choice >> 2) % 3],
        ..GuestOptions::default()
    };
    let request = GenerateRequest {
        subject: &subject,
        profile: "realtime-virtual-host",
        changes: &[],
        withheld: &[],
        options: &options,
        says: of_check,
    };
    match patch(text, "own.xml", &request) {
        Ok((once, _)) => {
            let again = patch(&once, "own.xml", &request);
            let (twice, output) = again.unwrap_or_else(|refusal| panic!("{refusal}\n{once}"));
            assert_eq!(twice, once, "{:?}", output.notes);
        }
        Err(refusal) => assert!(!refusal.to_string().is_empty() && !refusal.hint().is_empty()),
    }
    Corpus::Keep
});

/// Eight CPUs of Intel without SMT.
fn machine() -> Facts {
    let mut facts = Facts::default();
    facts.keep("uname:machine", "x86_64");
    facts.keep("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu pdpe1gb tsc_deadline_timer\n");
    facts.keep("/sys/devices/system/cpu/online", "0-7");
    for cpu in 0..8 {
        facts
            .keep(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), cpu.to_string());
    }
    facts.keep("/sys/devices/system/node/node0/cpulist", "0-7");
    facts
}
