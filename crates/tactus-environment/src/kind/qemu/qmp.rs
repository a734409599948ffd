//! QEMU's monitor: JSON lines over a socket (docs/interop/qmp-spec of QEMU).

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};

use serde::Deserialize;

/// The longest line that is read, in bytes.
const MAX_LINE: usize = 1 << 20;
/// How long an answer may take however it comes: one that comes byte by byte is never silent for long.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most lines that are read until an answer comes: greetings and events.
const MAX_LINES: usize = 1024;

/// A line from QEMU.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// The answer to a command.
    Return(serde_json::Value),
    /// A command failed; QEMU's words.
    Error(String),
    /// A greeting or an event: not a reply.
    Other,
}

/// Reads one line. Pure.
///
/// # Errors
/// When it is no JSON object.
pub fn read_line(line: &str) -> Result<Line, serde_json::Error> {
    #[derive(Deserialize)]
    struct Raw {
        #[serde(rename = "return")]
        value: Option<serde_json::Value>,
        error: Option<RawError>,
    }
    #[derive(Deserialize)]
    struct RawError {
        desc: String,
    }
    let raw: Raw = serde_json::from_str(line)?;
    Ok(match raw {
        Raw { error: Some(error), .. } => Line::Error(error.desc),
        Raw { value: Some(value), .. } => Line::Return(value),
        Raw { .. } => Line::Other,
    })
}

/// The thread of each vCPU, by its number, from the answer to `query-cpus-fast`. Pure.
#[must_use]
pub fn threads(answer: &serde_json::Value) -> Vec<(u32, u32)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Cpu {
        cpu_index: u32,
        thread_id: u32,
    }
    let cpus = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    let read = cpus.iter().filter_map(|cpu| Cpu::deserialize(cpu).ok());
    let mut threads: Vec<(u32, u32)> = read.map(|cpu| (cpu.cpu_index, cpu.thread_id)).collect();
    threads.sort_unstable();
    threads
}

/// Whether a guest is paused, by the answer to `query-status`: by somebody's `stop`, or because it sleeps. Other states
/// in which it does not run (an I/O error, a panic) it does not leave by itself. Pure.
#[must_use]
pub fn is_paused(answer: &serde_json::Value) -> bool {
    matches!(answer["status"].as_str(), Some("paused" | "suspended"))
}

/// A monitor that is connected.
pub struct Monitor<R, W> {
    reader: BufReader<R>,
    writer: W,
}

impl<R: Read, W: Write> Monitor<R, W> {
    /// Takes over a connection and ends the greeting.
    ///
    /// # Errors
    /// When it breaks, or QEMU refuses.
    pub fn open(reader: R, writer: W) -> io::Result<Self> {
        let mut monitor = Self { reader: BufReader::new(reader), writer };
        monitor.ask("qmp_capabilities")?;
        Ok(monitor)
    }

    /// Takes over a connection whose greeting has been answered.
    pub fn again(reader: R, writer: W) -> Self {
        Self { reader: BufReader::new(reader), writer }
    }

    /// Gives a command without arguments and waits for its answer.
    ///
    /// # Errors
    /// When the connection breaks or is silent for too long, or QEMU refuses.
    pub fn ask(&mut self, command: &str) -> io::Result<serde_json::Value> {
        self.ask_with(command, None)
    }

    /// The same with arguments.
    ///
    /// # Errors
    /// See [`Monitor::ask`].
    pub fn ask_with(
        &mut self,
        command: &str,
        arguments: Option<serde_json::Value>,
    ) -> io::Result<serde_json::Value> {
        let arguments = arguments.map_or_else(String::new, |own| format!(",\"arguments\":{own}"));
        writeln!(self.writer, "{{\"execute\":\"{command}\"{arguments}}}")?;
        self.writer.flush()?;
        let until = Instant::now() + PATIENCE;
        for _ in 0..MAX_LINES {
            match read_line(&self.line(until)?)? {
                Line::Return(value) => return Ok(value),
                Line::Error(words) => {
                    return Err(io::Error::other(format!("QEMU refuses {command}: {words}")));
                }
                Line::Other => {}
            }
        }
        let words = format!("QEMU answers {command} with {MAX_LINES} other lines");
        Err(io::Error::new(io::ErrorKind::InvalidData, words))
    }

    /// The next line, or as much of one as is read.
    fn line(&mut self, until: Instant) -> io::Result<String> {
        let mut line = Vec::new();
        while line.len() < MAX_LINE && line.last() != Some(&b'\n') {
            if Instant::now() > until {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "QEMU's answer does not end"));
            }
            let here = self.reader.fill_buf()?;
            if here.is_empty() && line.is_empty() {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "QEMU closed its monitor"));
            }
            if here.is_empty() {
                break;
            }
            let end = here.iter().position(|byte| *byte == b'\n').map_or(here.len(), |at| at + 1);
            let end = end.min(MAX_LINE - line.len());
            line.extend_from_slice(&here[..end]);
            self.reader.consume(end);
        }
        String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_guest_is_paused_where_somebody_or_itself_stopped_it_and_not_where_something_broke() {
        // As QEMU 7.2 answers `query-status` after `stop`.
        let stopped: serde_json::Value =
            serde_json::from_str(r#"{"status": "paused", "singlestep": false, "running": false}"#).unwrap();
        assert!(is_paused(&stopped));
        for status in ["running", "io-error", "guest-panicked", "internal-error", "shutdown", "prelaunch", ""]
        {
            assert!(!is_paused(&serde_json::json!({ "status": status })), "{status}");
        }
        for other in [serde_json::json!(null), serde_json::json!({"status": 7}), serde_json::json!([1])] {
            assert!(!is_paused(&other));
        }
    }

    use proptest::prelude::*;

    use super::*;

    /// The output of QEMU 7.2.
    const RECORDED: &str = r#"{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": "Debian 1:7.2+dfsg-7+deb12u18+b3"}, "capabilities": ["oob"]}}
{"return": {}}
{"timestamp": {"seconds": 1795246800, "microseconds": 1}, "event": "NIC_RX_FILTER_CHANGED", "data": {}}
{"return": [{"thread-id": 4002, "props": {"core-id": 1, "thread-id": 0, "socket-id": 0}, "qom-path": "/machine/unattached/device[2]", "cpu-index": 1, "target": "x86_64"}, {"thread-id": 4001, "props": {"core-id": 0, "thread-id": 0, "socket-id": 0}, "qom-path": "/machine/unattached/device[0]", "cpu-index": 0, "target": "x86_64"}]}
"#;

    #[test]
    fn the_threads_of_the_vcpus_are_found_among_greetings_and_events() {
        let mut said = Vec::new();
        let mut monitor = Monitor::open(RECORDED.as_bytes(), &mut said).unwrap();
        let answer = monitor.ask("query-cpus-fast").unwrap();
        assert_eq!(threads(&answer), [(0, 4001), (1, 4002)]);
        assert!(monitor.ask("quit").is_err(), "the recording ends");
        assert!(String::from_utf8(said).unwrap().starts_with("{\"execute\":\"qmp_capabilities\"}\n"));
    }

    #[test]
    fn a_refusal_is_an_error_with_qemus_words() {
        let refusal =
            r#"{"error": {"class": "CommandNotFound", "desc": "The command x has not been found"}}"#;
        let error = Monitor::open(refusal.as_bytes(), Vec::new()).err().unwrap();
        assert!(error.to_string().contains("has not been found"), "{error}");
        assert!(Monitor::open(&b"garbage\n"[..], Vec::new()).is_err());
        assert!(Monitor::open(&b""[..], Vec::new()).is_err());
    }

    #[test]
    fn a_monitor_that_answers_with_events_alone_or_a_line_without_an_end_is_given_up() {
        let events = io::repeat(b'{').take(0).chain(Endless(b"{\"event\": \"RESET\"}\n", 0));
        let error = Monitor::open(events, Vec::new()).err().unwrap();
        assert!(error.to_string().contains("1024 other lines"), "{error}");
        assert!(Monitor::open(io::repeat(b'x'), Vec::new()).is_err());
        assert!(Monitor::open(io::repeat(b'['), Vec::new()).is_err(), "however deep");
    }

    #[test]
    fn an_answer_that_comes_byte_by_byte_has_an_end() {
        let drops = Endless(b"{", 0).take(MAX_LINE as u64);
        let mut monitor = Monitor { reader: BufReader::with_capacity(1, drops), writer: Vec::new() };
        let error = monitor.line(Instant::now()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert!(monitor.line(Instant::now() + PATIENCE).unwrap().len() > MAX_LINE / 2);
    }

    /// The same words over and over.
    struct Endless(&'static [u8], usize);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = (&self.0[self.1..]).read(buffer)?;
            self.1 = (self.1 + read) % self.0.len();
            Ok(read)
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_the_reader_panic(line in ".{0,200}") {
            let _ = read_line(&line);
            if let Ok(value) = serde_json::from_str(&line) {
                let _ = threads(&value);
            }
        }
    }
}
