//! The screen in a terminal: a separate thread draws the state and reads keys. Nothing waits for it: a
//! terminal that has gone, or takes no more, ends the screen and never the run.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr,
};

use crate::screen::{Look, draw};
use crate::shared::Shared;
use crate::view::{Asked, View, keys};

/// How long a key is waited for before it is looked whether anything is new.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
/// The least time between two pictures.
const BETWEEN: Duration = Duration::from_millis(20);
/// A picture is drawn within this, by a terminal that takes anything.
const A_PICTURE: Duration = Duration::from_millis(100);
/// The thread that draws.
const THREAD: &str = "screen";
/// How long the end of a run waits for a terminal that takes nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// A terminal is no larger than this, whatever it says: columns and lines.
const LARGEST: (u16, u16) = (500, 200);
/// The other screen, without a cursor; and back. The words of xterm, which every terminal of today knows.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
/// Leaves the screen: the text that was there comes back, and the cursor.
pub const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// Whether a thread has panicked since: the screen has ended.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// The settings of the terminal before; `None` while it has them.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// A screen that is shown.
pub struct Screen {
    stop: Arc<AtomicBool>,
    ended: Receiver<()>,
}

/// Whether a screen can be shown. Keys must come from a terminal, and it must be drawn on one. This process
/// must be in the foreground of both, because drawing would stop a job in the background.
#[must_use]
pub fn is_possible() -> bool {
    let (keys, drawn) = (rustix::stdio::stdin(), rustix::stdio::stderr());
    let terminals = rustix::termios::isatty(keys) && rustix::termios::isatty(drawn);
    let knows = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    let in_front = tcgetpgrp(keys).is_ok_and(|group| group == rustix::process::getpgrp());
    terminals && knows && in_front && tcgetwinsize(drawn).is_ok_and(|size| size.ws_col > 0 && size.ws_row > 0)
}

impl Screen {
    /// Shows a run until it is closed, from a thread on the CPUs of the caller. It calls `ask` with the
    /// requests of keys.
    ///
    /// # Errors
    /// When the terminal cannot be set.
    pub fn open(
        shared: Shared,
        view: View,
        look: Look,
        ask: impl FnMut(Asked) + Send + 'static,
    ) -> io::Result<Self> {
        // A separate descriptor: a thread that waits for a stuck terminal then holds no lock of stderr.
        let mut out = File::from(rustix::stdio::stderr().try_clone_to_owned()?);
        set()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (done, ended) = sync_channel(1);
        let asked_to_stop = Arc::clone(&stop);
        std::thread::Builder::new().name(THREAD.into()).spawn(move || {
            let shown =
                out.write_all(ENTER).and_then(|()| show(&shared, view, look, &asked_to_stop, &out, ask));
            if shown.is_ok() {
                restore(true);
            }
            let _ = done.send(());
        })?;
        Ok(Self { stop, ended })
    }

    /// Ends the screen: the terminal is as before. Waits a moment for one that takes nothing, and no longer.
    pub fn close(self) {
        self.stop.store(true, Ordering::Relaxed);
        // A screen that is stuck would be stuck again.
        let ended = self.ended.recv_timeout(PATIENCE).is_ok();
        restore(ended);
    }
}

/// Keys come one by one and unseen. Ctrl-C keeps its effect: the kernel sends it to the run. Ctrl-Z and
/// Ctrl-S do nothing, because a stopped run records nothing.
fn set() -> io::Result<()> {
    static HOOK: Once = Once::new();
    let keys = rustix::stdio::stdin();
    let before = tcgetattr(keys)?;
    let mut modes = before.clone();
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    modes.input_modes.remove(InputModes::IXON);
    // Not 0: a shell that comes back to a terminal set so takes it for the end of its input.
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    modes.special_codes[SpecialCodeIndex::VSUSP] = 0;
    tcsetattr(keys, OptionalActions::Now, &modes)?;
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    HOOK.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            told(panic);
        }));
    });
    Ok(())
}

/// In a panic of any thread: nothing more is drawn, and the terminal is restored before the message is
/// printed.
fn give_back() {
    PANICKED.store(true, Ordering::Relaxed);
    if std::thread::current().name() != Some(THREAD) {
        // The picture that is being drawn just now.
        std::thread::sleep(A_PICTURE);
    }
    restore(true);
}

/// Sets the terminal as it was; once. `draws`: and leaves the screen.
fn restore(draws: bool) {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(before) = before else { return };
    if draws {
        let _ = rustix::io::write(rustix::stdio::stderr(), LEAVE.as_bytes());
    }
    let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &before);
}

/// Draws until it is stopped, or the terminal is gone.
fn show(
    shared: &Shared,
    mut view: View,
    look: Look,
    stop: &AtomicBool,
    out: &File,
    mut ask: impl FnMut(Asked),
) -> io::Result<()> {
    let mut area = size(out.as_fd());
    let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, out));
    let mut terminal = Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Fixed(area) })?;
    let mut drawn = None;
    while !stop.load(Ordering::Relaxed) && !PANICKED.load(Ordering::Relaxed) {
        let now = size(out.as_fd());
        if now != area {
            area = now;
            terminal.resize(area)?;
            drawn = None;
        }
        let events = shared.lock().events;
        if drawn != Some(events) {
            terminal.draw(|frame| draw(&shared.lock(), &view, look, frame))?;
            drawn = Some(events);
        }
        let pressed = read()?;
        for key in keys(&pressed) {
            let asked = view.key(key, &shared.lock());
            if asked != Asked::Nothing {
                ask(asked);
            }
            drawn = None;
        }
        std::thread::sleep(BETWEEN);
    }
    Ok(())
}

/// How large the terminal is now.
fn size(of: BorrowedFd<'_>) -> Rect {
    let (columns, lines) = tcgetwinsize(of).map_or((80, 24), |size| (size.ws_col, size.ws_row));
    Rect::new(0, 0, columns.clamp(1, LARGEST.0), lines.clamp(1, LARGEST.1))
}

/// The bytes typed until now; waits a moment for them.
fn read() -> io::Result<Vec<u8>> {
    let keys = rustix::stdio::stdin();
    let mut wanted = [PollFd::new(&keys, PollFlags::IN)];
    match poll(&mut wanted, Some(&PAUSE)) {
        Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
        polled => polled?,
    };
    let came = wanted[0].revents();
    if came.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::ErrorKind::NotConnected.into());
    }
    if !came.contains(PollFlags::IN) {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; 256];
    match rustix::io::read(keys, &mut bytes) {
        Ok(count) => bytes.truncate(count),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => bytes.clear(),
        Err(error) => return Err(error.into()),
    }
    Ok(bytes)
}
