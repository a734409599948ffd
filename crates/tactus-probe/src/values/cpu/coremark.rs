//! A user's own `CoreMark`: run as it is, and its transcript read.
//!
//! The transcript is that of `core_main.c` (EEMBC, CoreMark 1.0): `Iterations/Sec   : N`, lines that begin with `ERROR!`
//! or `[N]ERROR!`, and at the end `Correct operation validated.` and the line that may be published,
//! `CoreMark 1.0 : N / compiler / memory`.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tactus_model::catalogue::Measure;

use super::super::alone;
use super::{Bench, Operation, Place};
use crate::sys;

/// Limit of its output that is read, in bytes.
const LONGEST: usize = 65_536;
/// How long it may take, in ns. It chooses its iterations so that it runs for 10 to 20 s.
const PATIENCE_NS: u64 = 120_000_000_000;
/// How often it is looked whether the measurement is over.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// The program that the plan names, if this environment has it.
pub fn coremark(place: &Place<'_>) -> io::Result<Bench> {
    let named = if let Measure::Cpu(cpu) = place.measure { cpu.coremark.as_deref() } else { None };
    let program = named.ok_or(ErrorKind::NotFound)?.to_owned();
    let failed = |what: &str| io::Error::other(format!("`{program}` {what}"));
    if !program.starts_with('/') {
        return Err(failed("is not an absolute path"));
    }
    rustix::fs::access(&program, rustix::fs::Access::EXEC_OK)
        .map_err(|error| failed(&format!("cannot be run in this environment: {error}")))?;
    let finish = place.finish;
    let run = move |_| {
        let text = transcript(&program, finish)?;
        rate(&text).map_err(|why| io::Error::other(format!("`{program}` {why}")))
    };
    Ok(Bench { of: Operation::Said, long: true, ..alone(run) })
}

/// The output of the program, up to its end.
fn transcript(program: &str, finish: &AtomicU64) -> io::Result<String> {
    let mut process = Command::new(program);
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = sys::die_with_parent(&mut process).spawn()?;
    let text = child.stdout.take().ok_or(ErrorKind::BrokenPipe.into()).and_then(|said| heard(said, finish));
    if text.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    let text = text?;
    if status.success() {
        Ok(text)
    } else {
        Err(io::Error::other(format!("`{program}` has failed: {status}")))
    }
}

fn heard(mut said: ChildStdout, finish: &AtomicU64) -> io::Result<String> {
    let (until, mut text) = (sys::now() + PATIENCE_NS, Vec::new());
    loop {
        if finish.load(Ordering::Relaxed) != 0 {
            return Err(ErrorKind::Interrupted.into());
        }
        if sys::now() > until || text.len() > LONGEST {
            return Err(io::Error::other("it does not end"));
        }
        if poll(&mut [PollFd::from_borrowed_fd(said.as_fd(), PollFlags::IN)], Some(&LOOK))? == 0 {
            continue;
        }
        let mut part = [0; 4_096];
        match said.read(&mut part)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            n => text.extend_from_slice(&part[..n]),
        }
    }
}

/// Iterations in a second, in thousandths, of a run that may be published: a valid one, whose result is right.
fn rate(text: &str) -> Result<u64, String> {
    let starts = |with: &'static str| text.lines().map(str::trim).find(move |line| line.starts_with(with));
    let wrong = |line: &str| {
        line.starts_with("Errors detected")
            || line.split(']').next_back().is_some_and(|rest| rest.starts_with("ERROR!"))
    };
    if let Some(line) = text.lines().map(str::trim).find(|line| wrong(line)) {
        return Err(format!(
            "says: {}",
            line.chars().take(100).filter(|c| !c.is_control()).collect::<String>()
        ));
    }
    starts("Correct operation validated").ok_or("does not say that its operation was correct")?;
    let published =
        starts("CoreMark 1.0 : ").ok_or("prints no result: it is not a performance run of CoreMark 1.0")?;
    let published = number(published).ok_or("prints a result that is not a number")?;
    let iterations =
        starts("Iterations/Sec").and_then(number).ok_or("does not print its iterations in a second")?;
    // Both are the same quotient.
    if published == 0 || published.abs_diff(iterations) > published / 1_000 {
        return Err("prints a result that is not its iterations in a second".into());
    }
    Ok(published)
}

/// The number behind the first colon, in thousandths. To read any decimal number takes thirty thousand bytes of code.
fn number(line: &str) -> Option<u64> {
    let text = line.split(':').nth(1)?.split('/').next()?.trim();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then_some(());
    digits(part)?;
    let thousandths = format!("{part:0<3}").get(..3)?.parse::<u64>().ok()?;
    digits(whole)?;
    whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(thousandths)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use tactus_model::CpuSet;
    use tactus_model::catalogue::measure::Cpu;

    use super::*;

    /// As `core_main.c` prints it; the numbers are made up.
    const GOOD: &str = "\
2K performance run parameters for coremark.
CoreMark Size    : 666
Total ticks      : 12345
Total time (secs): 12.345000
Iterations/Sec   : 24301.336574
Iterations       : 300000
Compiler version : GCC12.2.0
Compiler flags   : -O2   -lrt
Memory location  : Please put data memory location here
\t\t\t(e.g. code in flash, data on heap etc)
seedcrc          : 0xe9f5
[0]crclist       : 0xe714
[0]crcmatrix     : 0x1fd7
[0]crcstate      : 0x8e3a
[0]crcfinal      : 0xcc42
Correct operation validated. See README.md for run and reporting rules.
CoreMark 1.0 : 24301.336574 / GCC12.2.0 -O2   -lrt / Heap
";

    #[test]
    fn the_result_is_that_of_a_run_that_may_be_published() {
        assert_eq!(rate(GOOD), Ok(24_301_336));
        let parallel = GOOD.replace(" / Heap", " / Heap / 4:PThreads");
        assert_eq!(rate(&parallel), Ok(24_301_336));
    }

    /// Output of ports to boards: an older form of the last line but one, a score after the result, and a validation
    /// run after that. A port that counts whole seconds gives no result.
    #[test]
    fn what_ports_add_behind_the_result_does_not_change_it() {
        let older = GOOD.replace("See README.md for", "See readme.txt for");
        assert_eq!(rate(&format!("{older}Score (Coremarks/MHz):   2.67\n")), Ok(24_301_336));
        let validation = GOOD.replace("performance", "validation").replace("24301.336574", "24111.5");
        let validation = validation.split("CoreMark 1.0").next().unwrap();
        assert_eq!(rate(&format!("{GOOD}{validation}")), Ok(24_301_336));
        let whole = GOOD.replace("24301.336574\nIterations", "24301\nIterations");
        assert!(
            rate(whole.split("CoreMark 1.0").next().unwrap()).unwrap_err().contains("not a performance run")
        );
    }

    #[test]
    fn a_transcript_that_is_cut_has_no_result() {
        let whole = GOOD.find("CoreMark 1.0 : ").unwrap() + "CoreMark 1.0 : 24301.3".len();
        for end in 0..whole - 2 {
            assert!(rate(&GOOD[..end]).is_err(), "{}", &GOOD[..end]);
        }
    }

    #[test]
    fn a_run_with_errors_or_of_other_parameters_has_no_result() {
        let with = |line: &str| rate(&format!("{line}\n{GOOD}")).unwrap_err();
        assert!(with("ERROR! Must execute for at least 10 secs for a valid result!").contains("10 secs"));
        assert!(with("[0]ERROR! list crc 0x1234 - should be 0xe714").contains("list crc"));
        assert!(with("Errors detected").contains("Errors detected"));
        let validation = GOOD.replace("CoreMark 1.0", "CoreMark");
        assert!(rate(&validation).unwrap_err().contains("not a performance run"));
    }

    #[test]
    fn a_number_is_read_to_thousandths() {
        let of = |text: &str| number(&format!("Iterations/Sec   : {text}"));
        assert_eq!(
            (of("7"), of("7.5"), of("0.0019"), of("24301.336574 / GCC")),
            (Some(7_000), Some(7_500), Some(1), Some(24_301_336))
        );
    }

    #[test]
    fn hostile_numbers_are_no_result() {
        for number in [
            "inf",
            "NaN",
            "-1",
            "0",
            "1e999",
            "",
            "0x10",
            "24301,3",
            "+1",
            ".",
            "1.2.3",
            "99999999999999999999",
            "18446744073709552",
            "99999.0",
        ] {
            let text = GOOD.replace("CoreMark 1.0 : 24301.336574", &format!("CoreMark 1.0 : {number}"));
            assert!(rate(&text).is_err(), "{number}");
            let both = GOOD.replace("24301.336574", number);
            assert!(number == "99999.0" || rate(&both).is_err(), "{number}");
        }
    }

    /// A program that stands in for CoreMark.
    fn stand_in(name: &str, script: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tactus-coremark-{name}-{}", std::process::id()));
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// The result of a run of a program.
    fn run(program: &str, finish: &'static AtomicU64) -> io::Result<Option<u64>> {
        let measure = Measure::Cpu(Cpu { coremark: Some(program.to_owned()) });
        let cpus = CpuSet::one(0);
        let mut bench = coremark(&Place::new(&measure, &cpus, finish))?;
        (bench.run)(1)
    }

    #[test]
    fn a_program_is_run_and_its_result_is_the_value() {
        static GOES_ON: AtomicU64 = AtomicU64::new(0);
        static OVER: AtomicU64 = AtomicU64::new(1);
        let of = |name: &str, script: &str, finish| {
            let path = stand_in(name, script);
            let result = run(path.to_str().unwrap(), finish);
            std::fs::remove_file(path).unwrap();
            result
        };
        let good = format!("cat <<'END'\n{GOOD}END");
        assert_eq!(of("good", &good, &GOES_ON).unwrap(), Some(24_301_336));
        let failed = of("failed", &format!("{good}\nexit 3"), &GOES_ON).unwrap_err().to_string();
        assert!(failed.contains("has failed") && failed.contains('3'), "{failed}");
        let silent = of("silent", "", &GOES_ON).unwrap_err().to_string();
        assert!(silent.contains("operation was correct"), "{silent}");
        let endless = of("endless", "exec yes", &GOES_ON).unwrap_err().to_string();
        assert!(endless.contains("does not end"), "{endless}");
        let over = of("over", "exec sleep 1000", &OVER).unwrap_err();
        assert_eq!(over.kind(), ErrorKind::Interrupted, "it ends with the measurement");
    }

    #[test]
    fn a_program_that_is_not_here_is_told_by_its_name() {
        static GOES_ON: AtomicU64 = AtomicU64::new(0);
        for (program, why) in [
            ("coremark.exe", "not an absolute path"),
            ("/nowhere/coremark.exe", "No such file"),
            ("/etc/passwd", "ermission denied"),
        ] {
            let error = run(program, &GOES_ON).unwrap_err().to_string();
            assert!(error.contains(program) && error.contains(why), "{error}");
        }
    }
}
