//! A panic while the live screen is shown: the terminal is as it was, and what the panic says can be read.
#![expect(clippy::disallowed_methods, reason = "these tests look at a process from outside the door")]

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use tactus_watch::Shared;
use tactus_watch::screen::Look;
use tactus_watch::state::Watched;
use tactus_watch::terminal::{LEAVE, Screen};
use tactus_watch::view::View;

/// Says which thread is to panic, to the process that does.
const ROLE: &str = "TACTUS_TEST_PANICS";
const WORDS: &str = "these are the words of the panic";

/// The process that panics. In the test run itself it does nothing.
#[test]
fn the_process_that_panics() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let shared = Shared::new(Watched::new("a plan that panics", []));
    let drawing = shared.clone();
    let ask = |_| {};
    let look = Look { colour: true, unicode: true };
    let screen = Screen::open(shared, View::default(), look, ask).expect("a terminal");
    // Something is drawn all the time.
    std::thread::spawn(move || {
        loop {
            drawing.lock().events += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    std::thread::sleep(Duration::from_secs(1));
    if role == "another" {
        let _ = std::thread::spawn(|| panic!("{WORDS}")).join();
        // The run continues without a screen.
        std::thread::sleep(Duration::from_secs(1));
        screen.close();
        std::process::exit(3);
    }
    panic!("{WORDS}");
}

/// Everything that is written to a terminal by a process in which a thread panics, how the terminal is set before and
/// after, and how the process ends.
fn seen(role: &str) -> (String, [Termios; 2], Option<i32>) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    tcsetwinsize(&master, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let not_ours = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).unwrap();
    let open = || OpenOptions::new().read(true).write(true).custom_flags(not_ours).open(&name).unwrap();
    // Held open: the settings stay with it.
    let own = open();
    let before = tcgetattr(&own).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_panics", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env("TERM", "xterm")
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::from(open()))
        .stdout(Stdio::null())
        .stderr(Stdio::from(open()))
        .spawn()
        .unwrap();
    let (told, heard) = channel();
    let mut reader = File::from(master.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count) = reader.read(&mut bytes) {
            if count == 0 || told.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let until = Instant::now() + Duration::from_secs(120);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < until, "it goes on");
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut all = Vec::new();
    while let Ok(bytes) = heard.recv_timeout(Duration::from_millis(500)) {
        all.extend(bytes);
    }
    let after = tcgetattr(&own).unwrap();
    (String::from_utf8_lossy(&all).into_owned(), [before, after], status.code())
}

fn is_as_before([before, after]: &[Termios; 2]) -> bool {
    before.local_modes == after.local_modes && before.input_modes == after.input_modes
}

/// Whether anything is drawn; that the cursor is to be seen may be said twice.
fn drawn_after(seen: &str) -> bool {
    seen.replace("\u{1b}[?25h", "").contains('\u{1b}')
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_says_its_words_and_the_process_fails() {
    let (seen, settings, code) = seen("main");
    assert!(seen.contains("\u{1b}[?1049h"), "the other screen was shown: {seen:?}");
    assert!(is_as_before(&settings), "{settings:?}");
    let (left, said) = (seen.find(LEAVE).expect("it is left"), seen.find(WORDS).expect("it is said"));
    assert!(left < said, "what is said on the other screen is gone with it: {seen:?}");
    assert!(!drawn_after(&seen[left + LEAVE.len()..]), "nothing is drawn over it: {seen:?}");
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
}

#[test]
fn after_a_panic_of_another_thread_nothing_is_drawn_over_its_words() {
    let (seen, settings, code) = seen("another");
    assert!(is_as_before(&settings), "{settings:?}");
    let (left, said) = (seen.find(LEAVE).expect("it is left"), seen.find(WORDS).expect("it is said"));
    assert!(left < said, "{seen:?}");
    assert!(!drawn_after(&seen[left + LEAVE.len()..]), "nothing is drawn over it: {seen:?}");
    assert_eq!(code, Some(3), "the run goes on to its own end");
}
