//! Calls of the host side for the system that the probe is on: files, programs, promises. An environment inside this
//! one is started with these calls.
//!
//! The session's thread serves them between its other duties. Waiting for a child's output, input or end is done in
//! [`RpcServer::turn`]; no call waits.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, waitpgid, waitpid,
};
use tactus_model::message::FromProbe;
use tactus_model::patience::in_time;
use tactus_model::process_files::is_of_memory;
use tactus_model::rpc::{Answer, Call, Exited, Output, READ, Verb, WINDOW, decode, encode};
use tactus_model::undo::{Undo, attempt, in_order, settings_first, undo};

use crate::actions::LocalSystem;
use crate::memory;

/// The argument that makes a process a child of a call.
pub const ARGUMENT: &str = "child";
/// Most bytes that are taken from one stream of a child in one turn: its flood must not keep ticks
/// waiting.
const GULP: usize = 16 * 1024;
/// The PATH if the environment has none, as in a guest.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program that was started for the host side.
struct Child {
    number: u64,
    pid: Pid,
    input: Option<File>,
    /// The call whose bytes the child has not taken yet, and those.
    pending: Option<(u64, Vec<u8>)>,
    /// stdout and stderr, with the bytes that may still be sent.
    streams: [(Option<File>, u64); 2],
    over: bool,
}

/// The objects that the host side has made on this system. Dropping it ends its children and keeps its promises.
#[derive(Default)]
pub struct RpcServer {
    children: Vec<Child>,
    promises: Vec<(u64, Undo)>,
}

/// An error of this system by its number.
fn code(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::NotFound => libc::ENOENT,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        _ => libc::EIO,
    })
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

impl RpcServer {
    /// Does what a call asks for. `None`: it is answered later.
    pub fn serve(&mut self, call: Call) -> Option<Answer> {
        let id = call.id;
        match self.perform(call) {
            Ok(None) => None,
            Ok(Some(answer)) => Some(Answer { id, ..answer }),
            Err(error) => Some(Answer { id, error: code(&error), ..Answer::default() }),
        }
    }

    fn perform(&mut self, call: Call) -> io::Result<Option<Answer>> {
        let path = Path::new(&call.path);
        let mut answer = Answer::default();
        let mode = u32::try_from(call.number).unwrap_or(0);
        match call.verb {
            Verb::Read => {
                let (path, from) = (path.to_owned(), call.number);
                let (bytes, more) = match is_of_memory(&path) {
                    true => in_time(&path.clone(), move || read(&path, from))?,
                    false => read(&path, from)?,
                };
                (answer.data, answer.number) = (encode(&bytes), more.into());
            }
            Verb::Create | Verb::Append | Verb::Own => {
                let bytes = match call.verb {
                    Verb::Own => fs::read("/proc/self/exe")?,
                    _ => decode(&call.data).ok_or_else(|| errno(libc::EINVAL))?,
                };
                write(path, &bytes, call.verb == Verb::Append, mode)?;
            }
            Verb::MakeDir => fs::DirBuilder::new().recursive(true).mode(mode).create(path)?,
            Verb::Rename => fs::rename(path, call.words.first().map_or("", String::as_str))?,
            Verb::List => {
                for entry in fs::read_dir(path)? {
                    answer.words.push(entry?.file_name().to_string_lossy().into_owned());
                }
            }
            Verb::Exists => answer.number = path.exists().into(),
            Verb::Opens => answer.number = open_both(path).is_ok().into(),
            Verb::Find => {
                answer.words.extend(find(&call.path).map(|path| path.to_string_lossy().into_owned()));
            }
            Verb::Spawn => answer.number = self.spawn(&call)?,
            Verb::Input => return self.input(&call),
            Verb::Grant => self.grant(&call),
            Verb::Kill => {
                if let Some(child) =
                    self.children.iter().find(|child| child.number == call.child && !child.over)
                {
                    kill_process(child.pid, Signal::KILL)?;
                }
            }
            Verb::Promise => self.promises.extend(call.undo.map(|undo| (call.child, undo))),
            Verb::Settle => self.promises.retain(|(number, _)| *number != call.child),
            Verb::Undo => attempt(&call.undo.ok_or_else(|| errno(libc::EINVAL))?, &LocalSystem)?,
        }
        Ok(Some(answer))
    }

    /// Starts a program in a separate process group that dies with this thread.
    fn spawn(&mut self, call: &Call) -> io::Result<u64> {
        let variables = usize::try_from(call.number).unwrap_or(usize::MAX).min(call.words.len());
        let (variables, words) = call.words.split_at(variables);
        let (program, arguments) = words.split_first().ok_or_else(|| errno(libc::EINVAL))?;
        let program = find(program).ok_or_else(|| errno(libc::ENOENT))?;
        // Starts this program first, which ties its life to this process. A fork here, with all memory locked, would
        // cost each measuring thread a page fault.
        let mut child = Command::new("/proc/self/exe")
            .arg0("tactus-probe")
            .arg(ARGUMENT)
            .arg(std::process::id().to_string())
            .arg(if memory::are_huge_pages_forbidden() { memory::ALLOW } else { "-" })
            .arg(program)
            .args(arguments)
            .envs(variables.iter().filter_map(|variable| variable.split_once('=')))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_child(&child);
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let input = input.map(|pipe| nonblocking(pipe.into()));
        let streams = [output.map(OwnedFd::from), errors.map(OwnedFd::from)];
        let streams = streams.map(|pipe| (pipe.map(nonblocking), WINDOW));
        self.children.push(Child { number: call.id, pid, input, pending: None, streams, over: false });
        Ok(u64::from(child.id()))
    }

    fn child(&mut self, number: u64) -> Option<&mut Child> {
        self.children.iter_mut().find(|child| child.number == number)
    }

    fn input(&mut self, call: &Call) -> io::Result<Option<Answer>> {
        let child = self.child(call.child).ok_or_else(|| errno(libc::EPIPE))?;
        if call.data.is_empty() {
            child.input = None;
            return Ok(Some(Answer::default()));
        }
        if child.input.is_none() {
            return Err(errno(libc::EPIPE));
        }
        if child.pending.is_some() {
            return Err(errno(libc::EBUSY));
        }
        child.pending = Some((call.id, decode(&call.data).ok_or_else(|| errno(libc::EINVAL))?));
        Ok(None)
    }

    fn grant(&mut self, call: &Call) {
        let stream = usize::from(call.words.first().is_some_and(|stream| stream == "2"));
        let Some(child) = self.child(call.child) else { return };
        let (pipe, credit) = &mut child.streams[stream];
        if call.number == 0 {
            *pipe = None;
        }
        *credit = credit.saturating_add(call.number).min(WINDOW);
    }

    /// The descriptors of children to wait for.
    pub fn descriptors<'a>(&'a self, to: &mut Vec<PollFd<'a>>) {
        let mut add = |file: BorrowedFd<'a>, flags| to.push(PollFd::from_borrowed_fd(file, flags));
        for child in &self.children {
            for (pipe, credit) in &child.streams {
                if let Some(pipe) = pipe.as_ref().filter(|_| *credit > 0) {
                    add(pipe.as_fd(), PollFlags::IN);
                }
            }
            if let Some(pipe) = child.input.as_ref().filter(|_| child.pending.is_some()) {
                add(pipe.as_fd(), PollFlags::OUT);
            }
        }
    }

    /// How long may be waited, in ns, with an eye on children's ends: they come at once after that of
    /// their streams.
    pub fn patience(&self) -> Option<u64> {
        let waits = self.children.iter().any(|child| child.streams.iter().all(|(pipe, _)| pipe.is_none()));
        if self.children.is_empty() { None } else { Some(if waits { 5_000_000 } else { 100_000_000 }) }
    }

    /// Reads the output of children, writes their input, and notes their ends.
    pub fn turn(&mut self, say: &mut Vec<FromProbe>) {
        let mut bytes = Vec::new();
        for child in &mut self.children {
            for (stream, (pipe, credit)) in (1..).zip(&mut child.streams) {
                let Some(file) = pipe.as_mut().filter(|_| *credit > 0) else { continue };
                let most = usize::try_from(*credit).unwrap_or(GULP).min(GULP);
                bytes.resize(most, 0);
                let length = match file.read(&mut bytes) {
                    Ok(length) => length,
                    Err(error) if waits(&error) => continue,
                    Err(_) => 0,
                };
                if length == 0 {
                    *pipe = None;
                }
                *credit -= length as u64;
                let data = encode(&bytes[..length]);
                say.push(FromProbe::Output(Output { child: child.number, stream, data }));
            }
            if let Some(answer) = child.feed() {
                say.push(FromProbe::Answer(answer));
            }
            if !child.over
                && let Ok(Some((_, status))) = waitpid(Some(child.pid), WaitOptions::NOHANG)
            {
                say.push(child.ended(status));
            }
        }
        self.children.retain(|child| !child.over || child.streams.iter().any(|(pipe, _)| pipe.is_some()));
    }

    /// Reaps every child of this process that has ended, started or inherited. Only where no other code waits for
    /// children.
    pub fn reap(&mut self, say: &mut Vec<FromProbe>) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if let Some(child) = self.children.iter_mut().find(|child| child.pid == pid && !child.over) {
                say.push(child.ended(status));
            }
        }
    }
}

impl Child {
    fn ended(&mut self, status: WaitStatus) -> FromProbe {
        self.over = true;
        FromProbe::Exited(Exited { child: self.number, code: status.exit_status() })
    }

    /// Writes pending input; returns the answer once the child has taken it, or never will.
    fn feed(&mut self) -> Option<Answer> {
        let (id, bytes) = self.pending.as_mut()?;
        let id = *id;
        let written = match self.input.as_mut() {
            Some(input) => input.write(bytes),
            None => Err(errno(libc::EPIPE)),
        };
        let error = match written {
            Ok(length) => {
                bytes.drain(..length);
                if !bytes.is_empty() {
                    return None;
                }
                0
            }
            Err(error) if waits(&error) && !self.over => return None,
            Err(error) => code(&error),
        };
        self.pending = None;
        Some(Answer { id, error, ..Answer::default() })
    }
}

impl Drop for RpcServer {
    fn drop(&mut self) {
        for child in &self.children {
            if !child.over {
                let _ = kill_process_group(child.pid, Signal::KILL);
                while waitpgid(child.pid, WaitOptions::empty()).is_ok() {}
            }
        }
        if std::process::id() == 1 {
            // The whole system ends here.
            return;
        }
        let open = in_order(std::mem::take(&mut self.promises));
        settings_first(&open, &LocalSystem);
        for (_, how) in open {
            if let Err(error) = undo(&how, &LocalSystem) {
                crate::stderr::say!("tactus-probe: not undone: {how}: {error}");
            }
        }
    }
}

/// The command `tactus-probe child PARENT thp|- PROGRAM ...`: ends with its parent, allows itself huge pages if told
/// to, and executes the program.
pub fn main(words: &[OsString]) -> u8 {
    let [parent, huge_pages, program, arguments @ ..] = words else { return 2 };
    if huge_pages == memory::ALLOW {
        memory::allow_huge_pages();
    }
    let alive = parent.to_str().and_then(|parent| parent.parse().ok()).is_some_and(crate::work::die_with);
    if alive {
        let error = Command::new(program).args(arguments).exec();
        crate::stderr::say!("{}: {error}", program.to_string_lossy());
    }
    127
}

fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn nonblocking(pipe: OwnedFd) -> File {
    // This end's own flag: the child's end blocks as ever.
    let _ = rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK);
    File::from(pipe)
}

fn open_both(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Adds bytes to a file that only this user may read (`mode` 1: for good), or makes it of them.
fn write(path: &Path, bytes: &[u8], append: bool, mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).append(append).truncate(!append);
    let mut file = options.mode(if append { 0o600 } else { 0o666 }).open(path)?;
    file.write_all(bytes)?;
    match mode {
        0 => Ok(()),
        _ if append => file.sync_data(),
        mode => file.set_permissions(fs::Permissions::from_mode(mode)),
    }
}

/// At most [`READ`] bytes from `from` on, and whether the file has more.
fn read(path: &Path, from: u64) -> io::Result<(Vec<u8>, bool)> {
    // A pipe without a writer must not keep the session waiting.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_dir() {
        return Err(errno(libc::EISDIR));
    }
    let mut bytes = vec![0; READ + 1];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], from + length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length.min(READ));
    Ok((bytes, length > READ))
}

fn find(name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    let own = std::env::var("PATH").unwrap_or_default();
    own.split(':').chain(PATH.split(':')).map(|dir| Path::new(dir).join(name)).find(is_program)
}
