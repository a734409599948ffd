//! Failures on the way through a probe.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tactus_model::message::{FromProbe, ToProbe};
use tactus_model::rpc::{Answer, Call, Exited, Output, Verb, encode};
use tactus_model::undo::{Entry, Undo};
use tactus_model::wire::{Decoder, Item};
use tactus_system::guardian::Guardian;
use tactus_system::{Connection, Invocation, Real, Remote, System};

use super::remote_probe::{RemoteProbe, lives};

fn gone(pid: u32) -> bool {
    (0..2_000).any(|_| {
        !lives(pid) || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }
    })
}

#[test]
fn the_end_of_the_session_ends_its_children_and_keeps_its_promises() {
    let dir = tempfile::tempdir().unwrap();
    let (made, noted) = (dir.path().join("made"), dir.path().join("noted"));
    let mut remote = RemoteProbe::begin();
    let guardian = Guardian::start(&Real).unwrap();
    let within = guardian.within(&remote.system, "a place").unwrap();
    assert_eq!(within.id(), format!("{}-a-place", guardian.id()));
    let workspace = within.workspace().unwrap();
    let place = workspace.path().to_owned();
    let kept_as_it_is = dir.path().join("kept as it is");
    for value in [&noted, &kept_as_it_is] {
        std::fs::write(value, "changed").unwrap();
    }
    let before = |path: &Path| Undo::Write { path: path.into(), value: "before".into() };
    let promises =
        [within.promise(Undo::Remove(made.clone())).unwrap(), within.promise(before(&noted)).unwrap()];
    let kept = within.promise(before(&kept_as_it_is)).unwrap();
    kept.forget();
    remote.system.install(&made.join("x/y"), b"", 0o600).unwrap();
    // A grandchild in a separate group: only its mark identifies it.
    let words = ["sh", "-c", "setsid sleep 61 & echo $!; exec sleep 62"];
    let mut child = remote.system.spawn(&Invocation::new(words).with_env(within.marker())).unwrap();
    let mut line = String::new();
    let mut stdout = child.take_stdout().unwrap();
    while !line.ends_with('\n') {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        line.push(char::from(byte[0]));
    }
    let grandchild: u32 = line.trim().parse().unwrap();
    assert!(lives(child.pid()) && lives(grandchild) && place.exists());
    // No farewell: the stream just ends.
    remote.connection.hang_up();
    remote.wait();
    assert!(gone(child.pid()) && gone(grandchild));
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert!(!made.exists() && !place.exists());
    assert_eq!((text(&noted), text(&kept_as_it_is)), ("before".into(), "changed".into()));
    for promise in promises {
        drop(promise);
    }
    drop((child, workspace, within));
    guardian.finish();
}

#[test]
fn a_killed_probe_takes_its_children_along_and_all_callers_return() {
    let mut remote = RemoteProbe::begin();
    let mut child = remote.system.spawn(&Invocation::new(["sleep", "60"])).unwrap();
    let mut stdout = child.take_stdout().unwrap();
    remote.probe.kill();
    remote.wait();
    assert!(gone(child.pid()));
    assert_eq!(stdout.read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(child.try_wait().unwrap(), Some(None));
    let error = remote.system.read(Path::new("/proc/version")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{error}");
    assert!(
        remote.system.spawn(&Invocation::new(["true"])).is_err()
            && remote.system.find_program("sh").is_none()
    );
}

#[test]
fn a_flood_that_nobody_reads_holds_up_nobody_but_itself() {
    let remote = RemoteProbe::begin();
    let mut flood = remote.system.spawn(&Invocation::new(["yes"])).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    assert!(remote.system.text("/proc/version").is_some());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(flood.try_wait().unwrap().is_none());
    drop(flood);
    remote.end();
}

/// A line whose other end answers by a script.
fn scripted(answer: impl Fn(u64) -> Vec<FromProbe> + Send + 'static) -> Remote {
    scripted_by(move |call| answer(call.id))
}

/// The same, with answers that depend on the call.
fn scripted_by(answer: impl Fn(&Call) -> Vec<FromProbe> + Send + 'static) -> Remote {
    struct Wire(std::sync::mpsc::Sender<Vec<u8>>);
    impl Write for Wire {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (to, from) = channel();
    let connection = Arc::new(Connection::new(Some(Box::new(Wire(to)))));
    let ear = Arc::clone(&connection);
    std::thread::spawn(move || {
        let mut decoder = Decoder::new();
        while let Ok(bytes) = from.recv() {
            for item in decoder.feed(&bytes) {
                let Item::Message(ToProbe::Call(call)) = item else { continue };
                for message in answer(&call) {
                    // Messages without a call come back; this test does not count them.
                    let _ = ear.take(message);
                }
            }
        }
    });
    Remote::new(connection, "x86_64")
}

#[test]
fn a_file_that_comes_a_byte_at_a_time_is_refused() {
    let system = scripted(|id| {
        vec![FromProbe::Answer(Answer { id, number: 1, data: encode(b"x"), ..Answer::default() })]
    });
    let error = system.read(Path::new("/proc/self/status")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
}

#[test]
fn answers_to_nobody_and_answers_that_are_no_bytes_do_no_harm() {
    let system = scripted(|id| {
        let answer =
            |id, data: &str| FromProbe::Answer(Answer { id, data: data.into(), ..Answer::default() });
        vec![
            answer(id + 7, ""),
            FromProbe::Exited(Exited { child: 99, code: Some(0) }),
            FromProbe::Output(Output { child: 99, stream: 3, data: "????".into() }),
            answer(id, "not base64!"),
        ]
    });
    let error = system.read(Path::new("/x")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
}

#[test]
fn only_what_was_asked_for_is_taken_and_all_else_comes_back_to_be_counted() {
    let connection = Connection::new(None);
    let output = |child| FromProbe::Output(Output { child, stream: 1, data: encode(b"x") });
    for stray in [
        FromProbe::Answer(Answer { id: 7, ..Answer::default() }),
        output(7),
        FromProbe::Exited(Exited { child: 7, code: Some(0) }),
    ] {
        assert!(connection.take(stray).is_some());
    }
    let connection = Arc::new(Connection::new(Some(Box::new(io::sink()))));
    let caller = Arc::clone(&connection);
    let spawning = std::thread::spawn(move || caller.spawn(vec!["x".into()], 0).unwrap().0);
    // Until the call is made, its answer has no receiver.
    while connection.take(FromProbe::Answer(Answer { id: 1, ..Answer::default() })).is_some() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let child = spawning.join().unwrap();
    let exited = || FromProbe::Exited(Exited { child, code: Some(0) });
    let end = FromProbe::Output(Output { child, stream: 1, data: String::new() });
    assert!(connection.take(output(child)).is_none() && connection.take(end).is_none());
    assert!(connection.take(output(child)).is_some(), "its stream has ended");
    assert!(connection.take(exited()).is_none() && connection.take(exited()).is_some(), "it ends once");
}

#[test]
fn a_probe_that_sends_more_than_it_may_is_not_believed() {
    let system = scripted(|id| {
        let output = |_| FromProbe::Output(Output { child: id, stream: 1, data: encode(&[b'x'; 60_000]) });
        let flood = (0..100).map(output);
        let answer = FromProbe::Answer(Answer { id, number: 5, ..Answer::default() });
        let exited = FromProbe::Exited(Exited { child: id, code: None });
        std::iter::once(answer).chain(flood).chain([exited]).collect()
    });
    let mut child = system.spawn(&Invocation::new(["x"])).unwrap();
    while child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut all = Vec::new();
    child.take_stdout().unwrap().read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 60_000, "the first piece was allowed");
}

#[test]
fn what_a_program_writes_through_a_probe_is_read_up_to_a_length() {
    // The program writes all it is allowed, for ever; it ends when it is allowed no more.
    let system = scripted_by(|call| {
        let answer = FromProbe::Answer(Answer { id: call.id, number: 5, ..Answer::default() });
        let more = || FromProbe::Output(Output { child: 1, stream: 1, data: encode(&[b'x'; 16 << 10]) });
        match (call.verb, call.number, call.words.first().map(String::as_str)) {
            (Verb::Spawn, ..) => {
                std::iter::once(answer).chain(std::iter::repeat_with(more).take(4)).collect()
            }
            (Verb::Grant, 0, Some("1")) => vec![FromProbe::Exited(Exited { child: 1, code: Some(0) })],
            // The other stream's end allows nothing.
            (Verb::Grant, 0, _) => Vec::new(),
            (Verb::Grant, ..) => vec![more()],
            (Verb::Input, ..) => vec![FromProbe::Output(Output { child: 1, stream: 2, data: String::new() })],
            _ => vec![answer],
        }
    });
    let error = system.run(&Invocation::new(["x"])).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
    assert!(error.to_string().contains("x: it is longer than 64MiB"), "{error}");
}

#[test]
fn a_program_that_ends_and_goes_on_writing_is_not_waited_for() {
    for stream in [1, 2] {
        // The other stream ends; this one never does.
        let system = scripted(move |id| {
            let answer = FromProbe::Answer(Answer { id, number: 5, ..Answer::default() });
            let end = FromProbe::Output(Output { child: 1, stream: 3 - stream, data: String::new() });
            vec![answer, end, FromProbe::Exited(Exited { child: 1, code: Some(0) })]
        });
        let began = Instant::now();
        let error = system.run(&Invocation::new(["x"]).within(Duration::from_millis(200))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert!(error.to_string().contains("keeps writing"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(50), "nobody waits for it");
    }
}

#[test]
fn a_program_that_ends_late_and_goes_on_writing_is_waited_for_once() {
    let patience = Duration::from_secs(3);
    let system = scripted_by(move |call| match call.verb {
        Verb::Spawn => vec![FromProbe::Answer(Answer { id: call.id, number: 5, ..Answer::default() })],
        // Its stdin is closed, and the wait begins.
        Verb::Input => {
            std::thread::sleep(patience * 3 / 4);
            vec![FromProbe::Exited(Exited { child: 1, code: Some(0) })]
        }
        _ => Vec::new(),
    });
    let began = Instant::now();
    let error = system.run(&Invocation::new(["x"]).within(patience)).unwrap_err();
    assert!(error.to_string().contains("keeps writing"), "{error}");
    assert!(began.elapsed() < patience * 3 / 2, "not again for its output: {:?}", began.elapsed());
}

#[test]
fn the_journal_of_another_system_is_its_probe() {
    let (heard, calls) = channel();
    let system = scripted(move |id| {
        heard.send(id).unwrap();
        vec![FromProbe::Answer(Answer { id, ..Answer::default() })]
    });
    system.tell(&Entry::Undo { id: 4, how: Undo::Remove("/x".into()) }).unwrap();
    system.tell(&Entry::Done { id: 4 }).unwrap();
    assert_eq!(calls.try_iter().count(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_answer_makes_a_call_panic(
        error in any::<i32>(), number in any::<u64>(), data in ".{0,20}", words in any::<Vec<String>>(), dead in any::<bool>(),
    ) {
        let system = scripted(move |id| {
            let id = if dead { id.wrapping_add(1) } else { id };
            let answer = Answer { id, error, number: number & !1, words: words.clone(), data: data.clone() };
            vec![FromProbe::Answer(answer), FromProbe::Answer(Answer { id: id.wrapping_sub(1), error: 5, ..Answer::default() })]
        });
        let _ = system.read(Path::new("/x"));
        let _ = (system.list(Path::new("/x")), system.find_program("x"), system.is_root());
    }
}
