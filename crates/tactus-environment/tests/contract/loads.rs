//! Loads in every kind of environment: made, or refused with the reason.

use std::time::Duration;

use tactus_model::catalogue::Load;
use tactus_model::catalogue::load::{Cache, Command, Disk, Memory, Network};
use tactus_model::size::Bytes;

use super::conversation::Conversation;
use super::{alone, everywhere, leftovers};

/// The kinds that are tried: one of each sort of system. To the probe the others are one of these,
/// however its stream is carried.
const TRIED: [&str; 4] = ["host", "podman", "oci", "qemu"];
/// Kinds whose system is the probe's alone: no other program and, but for containers, no disk.
const BARE: [&str; 3] = ["podman", "oci", "qemu"];

#[test]
fn every_load_is_made_in_every_environment_or_refused_with_the_reason() {
    let _turn = alone();
    everywhere(
        |kind| TRIED.contains(&kind),
        |environment, place| {
            let kind = environment.kind();
            let mut talk = Conversation::begin(environment, &place.spec)
                .unwrap_or_else(|error| panic!("{kind}: {error}"));
            talk.greet();
            let memory = Load::Memory(Memory { bytes: Some(Bytes(8 << 20)) });
            let disk = Load::Disk(Disk { directory: None, bytes: Some(Bytes(1 << 20)) });
            let words = ["sh", "-c", "while :; do :; done"].map(str::to_owned);
            let command = Load::Command(Command { run: words.to_vec() });
            for load in
                [Load::Cache(Cache::default()), memory, Load::Network(Network::default()), disk, command]
            {
                let name = load.kind();
                match talk.load(&load) {
                    Ok(rounds) => {
                        eprintln!("{kind}: {name}: {rounds} rounds");
                        assert!(rounds > 0, "{kind}: {name}");
                        assert!(name != "command" || !BARE.contains(&kind), "{kind} has no such program");
                    }
                    Err(refusal) => {
                        eprintln!("{kind}: {name}: {}", refusal.reason);
                        let reason = match name {
                            "disk" => "the file cannot be created",
                            "command" => "this environment has no program `sh`",
                            _ => panic!("{kind}: {name}: {refusal:?}"),
                        };
                        assert!(refusal.reason.contains(reason) && refusal.hint.is_some(), "{refusal:?}");
                        assert_ne!(kind, "host", "{refusal:?}");
                    }
                }
            }
            let id = talk.id().to_owned();
            talk.end();
            leftovers::none_within(&id, Duration::from_secs(5))
                .unwrap_or_else(|left| panic!("{kind} leaves {left}"));
        },
    );
}
