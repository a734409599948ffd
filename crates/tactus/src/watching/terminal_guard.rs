//! Sets the terminal back when the command is killed so that it cannot do so itself (`kill -9`, the second Ctrl-C).

use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use rustix::termios::ttyname;
use tactus_system::{Child, Invocation, Real, System};
use tactus_watch::terminal::LEAVE;

/// A shell that holds the other end of a pipe: when that closes, the command is gone. It must live on when the terminal's
/// signals come, and may set a terminal that it is not in front of.
const SCRIPT: &str = r#"trap '' INT HUP TERM QUIT TTOU
read -r _
printf '%s' "$3" >"$1"
stty -F "$1" "$2""#;
/// How long stty may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Somebody who sets the terminal back. Dropped, it does nothing any more.
pub struct TerminalGuard {
    /// Dropped first, it would be taken for the end of the command: the child is killed before.
    _child: Box<dyn Child>,
    _pipe: Box<dyn Write + Send>,
}

impl TerminalGuard {
    /// A guard for the terminal that keys come from; `None`: its name or its settings are unknown.
    pub fn start() -> Option<Self> {
        let name = ttyname(rustix::stdio::stdin(), Vec::new()).ok()?;
        let name = std::ffi::OsString::from_vec(name.into_bytes()).into_string().ok()?;
        let settings = Invocation::new(["stty", "-F", &name, "-g"]).within(PATIENCE);
        let settings = Real.run(&settings).ok().filter(|finished| finished.code == Some(0))?;
        let settings = String::from_utf8(settings.stdout).ok()?;
        let argv = ["sh", "-c", SCRIPT, "sh", &name, settings.trim(), LEAVE];
        let mut child = Real.spawn(&Invocation::new(argv)).ok()?;
        let pipe = child.take_stdin()?;
        Some(Self { _child: child, _pipe: pipe })
    }
}
