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
        return Note::info(format!("load `{kind}`: {}{unit}{way}", scaled(all)));
    }
    match load {
        // A round is a tenth of a second that the program ran.
        Load::Command(_) => {
            let ran = float(rounds) / 10.0;
            Note::info(format!("load `{kind}`: its program ran for {ran:.1} s of {seconds:.1} s"))
        }
        _ => {
            let (all, unit, way) = amount(load, float(rounds));
            Note::info(format!("load `{kind}`: {}{unit}/s{way}", scaled(all / seconds)))
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

/// A number to two digits, with k, M or G: 1.6 M.
fn scaled(number: f64) -> String {
    let (number, prefix) = [(1e9, " G"), (1e6, " M"), (1e3, " k")]
        .into_iter()
        .find(|(size, _)| number >= *size)
        .map_or((number, ""), |(size, prefix)| (number / size, prefix));
    if number < 10.0 { format!("{number:.1}{prefix}") } else { format!("{number:.0}{prefix}") }
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::load::{Command, Disk, Scheduler};
    use tactus_model::message::NoteKind;

    use super::*;

    #[test]
    fn a_load_is_told_by_what_it_did_in_a_second() {
        let scheduler = Load::Scheduler(Scheduler::default());
        let text = |rounds, ns| load_note(&scheduler, rounds, ns).text;
        assert_eq!(text(16_082_610, 10_000_000_000), "load `scheduler`: 1.6 M messages/s");
        assert_eq!(text(7, 2_000_000_000), "load `scheduler`: 3.5 messages/s");
        assert_eq!(text(2_000, 0), "load `scheduler`: 2.0 k messages", "nothing was measured beside it");
        assert!(text(u64::MAX, 1).ends_with(" G messages/s"), "hostile, and no panic");
        let disk = load_note(&Load::Disk(Disk::default()), 160, 1_000_000_000).text;
        assert_eq!(disk, "load `disk`: 10 MiB/s written and read");
        let program = Load::Command(Command { run: vec!["make".into()] });
        assert_eq!(
            load_note(&program, 98, 10_000_000_000).text,
            "load `command`: its program ran for 9.8 s of 10.0 s"
        );
    }

    #[test]
    fn a_load_that_did_nothing_is_no_load() {
        let note = load_note(&Load::Scheduler(Scheduler::default()), 0, 1_000_000_000);
        assert!(note.kind == NoteKind::Obstacle && note.text.contains("without load"), "{note:?}");
    }
}
