//! A line: a terminal device, a pseudo-terminal or a socket over which bytes come from somewhere else.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::{ControlModes, InputModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tactus_model::undo::{Tool, Undo};
use tactus_system::guardian::Promise;
use tactus_system::{Invocation, System};

use super::cannot;
use crate::{Setting, StartError, Stream};

/// How long the other side may take to take in what is written.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may take.
const CONNECTION: Duration = Duration::from_secs(10);

/// A line that is open. Dropping it ends its stream and gives a terminal its former settings back.
pub struct Tty {
    stream: Option<Stream>,
    /// The writing end of a pipe: closing it ends every read and write of the line.
    open: Option<OwnedFd>,
    terminal: Option<Terminal>,
}

/// A terminal, and what it was before.
struct Terminal {
    file: Arc<File>,
    former: Termios,
    promise: Option<Promise>,
}

impl Tty {
    /// Opens a terminal device as a raw line of 8 bits without parity and flow control. `baud`: its speed,
    /// or none to leave it; a pseudo-terminal has one and does not care.
    ///
    /// # Errors
    /// When it cannot be opened, is no terminal, is in use by another who locks it, or has no such speed.
    pub fn device(setting: &Setting<'_>, path: &Path, baud: Option<u32>) -> Result<Self, StartError> {
        let name = path.display();
        let failed = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => {
                    "is it plugged in, and its driver loaded? `ls /dev/tty*` lists terminals"
                }
                io::ErrorKind::PermissionDenied => {
                    "run as root, or as a user of the device's group (often `dialout`)"
                }
                io::ErrorKind::WouldBlock => "end the program that uses it (`fuser` names it)",
                _ => "name a terminal device, a pseudo-terminal, or use `socket`",
            };
            StartError { reason: format!("{name}: {error}"), hint: Some(hint.into()) }
        };
        // Without waiting for a carrier, which three wires do not have.
        let file = setting.system.device(path).map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            Errno::WOULDBLOCK => failed(io::Error::new(io::ErrorKind::WouldBlock, "another program uses it")),
            error => failed(error.into()),
        })?;
        let former = tcgetattr(&file)
            .map_err(|_| failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a terminal")))?;
        let promise = promise(setting, path)?;
        let file = Arc::new(file);
        let terminal = Terminal { file: Arc::clone(&file), former, promise };
        let wanted = raw(&terminal.former, baud).map_err(|error| StartError {
            reason: format!("{name}: it has no speed of {} baud: {error}", baud.unwrap_or(0)),
            hint: Some("use a speed that both sides support, as 115200".into()),
        })?;
        tcsetattr(&*file, OptionalActions::Now, &wanted).map_err(|error| failed(error.into()))?;
        Self::over(file, Some(terminal)).map_err(failed)
    }

    /// Connects to a socket: a UNIX one by its path (which has a `/`), or `host:port`.
    ///
    /// # Errors
    /// When no program listens there.
    pub fn socket(address: &str, system: &dyn System) -> Result<Self, StartError> {
        let failed = |error: io::Error| StartError {
            reason: format!("{address}: {error}"),
            hint: Some(
                "name a UNIX socket by its path, or `host:port`; a program must listen there, as QEMU does \
with `-serial unix:PATH,server=on,wait=off`"
                    .into(),
            ),
        };
        let descriptor: OwnedFd = if address.contains('/') {
            let stream = system.connect(Path::new(address)).map_err(failed)?;
            stream.set_nonblocking(true).map_err(failed)?;
            stream.into()
        } else {
            let stream = connect(address).map_err(failed)?;
            stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).map_err(failed)?;
            stream.into()
        };
        Self::over(Arc::new(File::from(descriptor)), None).map_err(failed)
    }

    fn over(file: Arc<File>, terminal: Option<Terminal>) -> io::Result<Self> {
        let (end, open) = pipe_with(PipeFlags::CLOEXEC)?;
        let end = Arc::new(end);
        let reader = Side { file: Arc::clone(&file), end: Arc::clone(&end) };
        let writer = Side { file, end };
        let stream = Stream { reader: Box::new(reader), writer: Box::new(writer) };
        Ok(Self { stream: Some(stream), open: Some(open), terminal })
    }

    /// Its bytes, both ways; once.
    pub fn take_stream(&mut self) -> Option<Stream> {
        self.stream.take()
    }

    /// Ends its stream, also for a reader that waits, and restores a terminal's former settings.
    pub fn close(&mut self) {
        drop(self.open.take());
        drop(self.terminal.take());
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.close();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone has no settings to give back.
        let given = tcsetattr(&*self.file, OptionalActions::Now, &self.former);
        if let Some(promise) = self.promise.take()
            && matches!(given, Ok(()) | Err(Errno::IO))
        {
            promise.forget();
        }
    }
}

/// The settings of a raw line.
fn raw(former: &Termios, baud: Option<u32>) -> io::Result<Termios> {
    let mut wanted = former.clone();
    wanted.make_raw();
    wanted.input_modes -= InputModes::IXON | InputModes::IXOFF | InputModes::IXANY;
    wanted.control_modes -= ControlModes::CRTSCTS | ControlModes::CSTOPB | ControlModes::PARENB;
    wanted.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD | ControlModes::CS8;
    if let Some(baud) = baud {
        wanted.set_speed(baud)?;
    }
    Ok(wanted)
}

/// The promise to restore a terminal's settings, in case tactus is killed. `None` on a machine without `stty`.
fn promise(setting: &Setting<'_>, path: &Path) -> Result<Option<Promise>, StartError> {
    let path = path.display().to_string();
    let ask = Invocation::new(["stty", "-F", &path, "-g"]).within(Duration::from_secs(5));
    let Some(former) = setting.system.run(&ask).ok().filter(tactus_system::Finished::success) else {
        return Ok(None);
    };
    let former = former.text().trim().to_owned();
    let how = Undo::Tool(Tool::Terminal { path: path.into(), settings: former });
    let promise = setting.guardian.promise(how);
    promise.map(Some).map_err(|error| cannot("the guardian process of tactus cannot be reached", error))
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "it is neither a path nor host:port");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECTION) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// One direction of a line.
struct Side {
    file: Arc<File>,
    end: Arc<OwnedFd>,
}

impl Side {
    /// Waits until the line can be read or written; `false` when it was closed here.
    fn wait(&self, what: PollFlags, patience: Option<Duration>) -> io::Result<bool> {
        let limit = patience.map(|time| Timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: time.subsec_nanos().into(),
        });
        loop {
            let mut both =
                [PollFd::from_borrowed_fd(self.file.as_fd(), what), PollFd::new(&self.end, PollFlags::IN)];
            match poll(&mut both, limit.as_ref()) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, "the other end reads no input")),
                Ok(_) if !both[1].revents().is_empty() => return Ok(false),
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Side {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.wait(PollFlags::IN, None)? {
                return Ok(0);
            }
            match (&*self.file).read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The other side of a pseudo-terminal has closed, or the plug was pulled.
                Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => return Ok(0),
                read => return read,
            }
        }
    }
}

impl Write for Side {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            if !self.wait(PollFlags::OUT, Some(PATIENCE))? {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            match (&*self.file).write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::LocalModes;
    use tactus_model::{CpuSet, plan};
    use tactus_system::guardian::Guardian;
    use tactus_system::{Directory, Real};

    use super::*;
    use crate::{ConsoleFile, Layout};

    fn pty() -> (File, String) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        (File::from(master), name)
    }

    fn with_setting<T>(act: impl FnOnce(&Setting<'_>) -> T) -> T {
        let guardian = Guardian::start(&Real).unwrap();
        let layout = Layout { cpus: vec![(0, 0)], measuring: CpuSet::one(0) };
        let done = act(&Setting {
            system: &Real,
            guardian: &guardian,
            name: "line",
            spec: &plan::Environment::default(),
            layout: &layout,
            housekeeping: CpuSet::default(),
            measured: CpuSet::default(),
            workspace: Path::new("/nowhere"),
            console: ConsoleFile::new(&Directory::open(Path::new("/")).unwrap(), "console.log"),
            patience: PATIENCE,
            network: None,
            card: None,
        });
        guardian.finish();
        done
    }

    #[test]
    fn a_terminal_carries_every_byte_both_ways_and_gets_its_settings_back() {
        let (mut master, name) = pty();
        let kept = Real.device(Path::new(&name)).unwrap();
        let former = tcgetattr(&kept).unwrap();
        assert!(former.local_modes.contains(LocalModes::ECHO | LocalModes::ICANON));
        with_setting(|setting| {
            let mut line = Tty::device(setting, Path::new(&name), Some(115_200)).unwrap();
            let Stream { mut reader, mut writer } = line.take_stream().unwrap();
            assert!(line.take_stream().is_none());
            let every: Vec<u8> = (0..=255).collect();
            master.write_all(&every).unwrap();
            let mut heard = vec![0; 256];
            reader.read_exact(&mut heard).unwrap();
            assert_eq!(heard, every);
            writer.write_all(&every).unwrap();
            master.read_exact(&mut heard).unwrap();
            assert_eq!(heard, every);
            // A waiting reader finds the end when the line is closed here.
            let waiting = std::thread::spawn(move || reader.read(&mut [0; 8]).unwrap());
            line.close();
            assert_eq!(waiting.join().unwrap(), 0);
            assert_eq!(writer.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        });
        let after = tcgetattr(&kept).unwrap();
        assert_eq!(
            (former.local_modes, former.input_modes, former.output_modes),
            (after.local_modes, after.input_modes, after.output_modes)
        );
    }

    #[test]
    fn a_line_whose_other_side_goes_ends() {
        let (master, name) = pty();
        with_setting(|setting| {
            let mut line = Tty::device(setting, Path::new(&name), None).unwrap();
            drop(master);
            assert_eq!(line.take_stream().unwrap().reader.read(&mut [0; 8]).unwrap(), 0);
        });
    }

    #[test]
    fn a_terminal_in_use_and_a_file_that_is_not_one_are_refused_by_name() {
        let (_master, name) = pty();
        with_setting(|setting| {
            let open = |path: &str| Tty::device(setting, Path::new(path), None).map(|_| ());
            let held = Tty::device(setting, Path::new(&name), None).unwrap();
            let error = open(&name).unwrap_err();
            assert!(error.reason.contains("another program uses it") && error.hint.is_some(), "{error}");
            drop(held);
            open(&name).unwrap();
            for (path, word) in [("/dev/null", "not a terminal"), ("/dev/no-such-tty", "No such file")] {
                let error = open(path).unwrap_err();
                assert!(error.reason.starts_with(path) && error.reason.contains(word), "{error}");
            }
        });
    }

    #[test]
    fn a_socket_is_named_by_its_path_or_its_port() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = Real.listen(&path).unwrap();
        let mut line = Tty::socket(path.to_str().unwrap(), &Real).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        other.write_all(b"hello").unwrap();
        drop(other);
        let mut heard = String::new();
        line.take_stream().unwrap().reader.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
        for nobody in ["/no/such/socket", "127.0.0.1:1", "no address"] {
            let error = Tty::socket(nobody, &Real).map(|_| ()).unwrap_err();
            assert!(error.reason.starts_with(nobody) && error.hint.is_some(), "{error}");
        }
    }
}
