//! The work of a load, in words: an amount per second, or nothing at all.

use tactus_model::catalogue::Load;
use tactus_model::message::Note;
use tactus_model::number::float;

/// The note on a load that made `rounds` rounds in `measured_ns`.
pub fn load_note(load: &Load, rounds: u64, measured_ns: u64) -> Note {
    let kind = load.kind();
    if rounds == 0 {
        return Note::obstacle(
            format!("the load `{kind}` did nothing: the measurement ran without load"),
            "check whether tasks of higher priority, such as real-time threads, take its CPUs",
        );
    }
    let seconds = float(measured_ns) / 1e9;
    if seconds <= 0.0 {
        let (all, unit, way) = amount(load, float(rounds));
        return Note::info(format!("work of the load `{kind}`: {}{way}", scaled(all, unit, "")));
    }
    match load {
        // A round is a tenth of a second that the program ran.
        Load::Command(_) => {
            let ran = float(rounds) / 10.0;
            Note::info(format!("the program of the load `{kind}` ran for {ran:.1} s of {seconds:.1} s"))
        }
        _ => {
            let (all, unit, way) = amount(load, float(rounds));
            Note::info(format!("work of the load `{kind}`: {}{way}", scaled(all / seconds, unit, "/s")))
        }
    }
}

/// The amount of work in `rounds` rounds, its unit, and words that follow the rate.
fn amount(load: &Load, rounds: f64) -> (f64, &'static str, &'static str) {
    match load {
        Load::Scheduler(_) => (rounds, " messages", ""),
        Load::Network(_) => (rounds, " datagrams", ""),
        Load::Console(_) => (rounds, " bytes", ""),
        Load::Memory(_) => (rounds, " MiB", ""),
        // A round is 64 KiB.
        Load::Disk(_) => (rounds / 16.0, " MiB", " written and read"),
        Load::Cache(_) => (rounds, " steps", ""),
        Load::Cpu(_) => (rounds * 1e3, " computations", ""),
        Load::Command(_) => (rounds / 10.0, " s", ""),
    }
}

/// A number to two digits with its unit: 1.6 million messages/s. A range of two such numbers is read right: 17 to 756
/// thousand.
fn scaled(number: f64, unit: &str, per: &str) -> String {
    let sizes = [(1e9, " billion"), (1e6, " million"), (1e3, " thousand")];
    let (number, word, unit) = match (unit, sizes.into_iter().find(|(size, _)| number >= *size)) {
        (" MiB", _) if number >= 1024.0 => (number / 1024.0, "", " GiB"),
        (" MiB", _) | (_, None) => (number, "", unit),
        (_, Some((size, word))) => (number / size, word, unit),
    };
    if number < 10.0 {
        format!("{number:.1}{word}{unit}{per}")
    } else {
        format!("{number:.0}{word}{unit}{per}")
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::load::{Command, Disk, Memory, Scheduler};
    use tactus_model::message::NoteKind;

    use super::*;

    #[test]
    fn a_load_is_told_by_what_it_did_in_a_second() {
        let scheduler = Load::Scheduler(Scheduler::default());
        let text = |rounds, ns| load_note(&scheduler, rounds, ns).text;
        assert_eq!(text(16_082_610, 10_000_000_000), "work of the load `scheduler`: 1.6 million messages/s");
        assert_eq!(text(7, 2_000_000_000), "work of the load `scheduler`: 3.5 messages/s");
        let all = "work of the load `scheduler`: 2.0 thousand messages";
        assert_eq!(text(2_000, 0), all, "nothing was measured beside it");
        assert!(text(u64::MAX, 1).ends_with(" billion messages/s"), "hostile, and no panic");
        let disk = load_note(&Load::Disk(Disk::default()), 160, 1_000_000_000).text;
        assert_eq!(disk, "work of the load `disk`: 10 MiB/s written and read");
        let memory = load_note(&Load::Memory(Memory::default()), 2_048, 1_000_000_000).text;
        assert_eq!(memory, "work of the load `memory`: 2.0 GiB/s");
        let program = Load::Command(Command { run: vec!["make".into()] });
        assert_eq!(
            load_note(&program, 98, 10_000_000_000).text,
            "the program of the load `command` ran for 9.8 s of 10.0 s"
        );
    }

    #[test]
    fn a_load_that_did_nothing_is_no_load() {
        let note = load_note(&Load::Scheduler(Scheduler::default()), 0, 1_000_000_000);
        assert!(note.kind == NoteKind::Obstacle && note.text.contains("without load"), "{note:?}");
    }
}
