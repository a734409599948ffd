//! The probe's arguments.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;

use lexopt::ValueExt;
use lexopt::prelude::{Long, Value};

use crate::channel::Channel;
use crate::{breakdown, enter, facts, guardian, kvm_exits, rpc, serial, session, sys, vcpu_watch, worker};

const HELP: &str = "tactus-probe: the program that tactus puts into every environment

usage:
  tactus-probe                                  \
    speak with tactus over stdin and stdout
  tactus-probe fleeting                         the same, after \
    it has removed its own file
  tactus-probe serve DEVICE [BAUD]              speak over a serial line, \
    and survive reconnects at its
                                                other end; for the kind \
    `serial`
  tactus-probe enter PROCESS STARTED NAME       the same in the namespaces of a process that \
    began then (clock
                                                ticks), under this name and with its \
    capabilities
  tactus-probe facts                            write the facts of this system as JSON
  \
    tactus-probe guardian --journal FILE --marker ID
                                                undo \
    what a run changed once stdin closes
  tactus-probe undo --journal FILE              undo a journal that \
    was left behind
  tactus-probe --version | --help
";

enum Command {
    Serve,
    Fleeting,
    Serial { device: PathBuf, baud: Option<u32> },
    Facts,
    Worker(String),
    Watch(Vec<String>),
    Breakdown,
    Exits(Vec<String>),
    Enter(enter::Target),
    Child(Vec<std::ffi::OsString>),
    Guardian { journal: PathBuf, marker: String },
    Undo { journal: PathBuf },
    Print(String),
}

/// Runs the command in the arguments and returns the exit code: 0 success, 2 failure.
pub fn run() -> u8 {
    let outcome = match parse() {
        Ok(command) => perform(command),
        Err(error) => Err(format!("{error}\nhint: tactus-probe --help")),
    };
    outcome.unwrap_or_else(|words| {
        crate::stderr::say!("tactus-probe: {words}");
        2
    })
}

fn parse() -> Result<Command, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let Some(first) = parser.next()? else { return Ok(Command::Serve) };
    match first {
        Long("version") => Ok(Command::Print(format!("tactus-probe {}\n", env!("CARGO_PKG_VERSION")))),
        Long("help") => Ok(Command::Print(HELP.into())),
        Value(word) if word == "facts" => Ok(Command::Facts),
        Value(word) if word == "fleeting" => Ok(Command::Fleeting),
        Value(word) if word == "serve" => {
            let device = PathBuf::from(parser.value()?);
            let baud = match parser.next()? {
                Some(Value(baud)) => Some(baud.parse()?),
                None => None,
                Some(other) => return Err(other.unexpected()),
            };
            Ok(Command::Serial { device, baud })
        }
        Value(word) if word == worker::ARGUMENT => Ok(Command::Worker(parser.value()?.string()?)),
        Value(word) if word == vcpu_watch::ARGUMENT => Ok(Command::Watch(rest(&mut parser)?)),
        Value(word) if word == kvm_exits::ARGUMENT => Ok(Command::Exits(rest(&mut parser)?)),
        Value(word) if word == breakdown::ARGUMENT => Ok(Command::Breakdown),
        Value(word) if word == enter::ARGUMENT => {
            let process = parser.value()?.parse()?;
            let started = parser.value()?.parse()?;
            Ok(Command::Enter(enter::Target { process, started, name: parser.value()?.string()? }))
        }
        Value(word) if word == rpc::ARGUMENT => Ok(Command::Child(parser.raw_args()?.collect())),
        Value(word) if word == "guardian" => {
            let (journal, marker) = journal_and_marker(&mut parser)?;
            let marker = marker.ok_or("guardian: --marker ID is missing")?;
            Ok(Command::Guardian { journal, marker })
        }
        Value(word) if word == "undo" => Ok(Command::Undo { journal: journal_and_marker(&mut parser)?.0 }),
        other => Err(other.unexpected()),
    }
}

fn rest(parser: &mut lexopt::Parser) -> Result<Vec<String>, lexopt::Error> {
    parser.raw_args()?.map(ValueExt::string).collect()
}

fn journal_and_marker(parser: &mut lexopt::Parser) -> Result<(PathBuf, Option<String>), lexopt::Error> {
    let (mut journal, mut marker) = (None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("journal") => journal = Some(PathBuf::from(parser.value()?)),
            Long("marker") => marker = Some(parser.value()?.string()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok((journal.ok_or("--journal FILE is missing")?, marker))
}

#[expect(clippy::print_stdout, reason = "output that the command line asks for is printed")]
fn perform(command: Command) -> Result<u8, String> {
    match command {
        Command::Print(text) => print!("{text}"),
        Command::Facts => {
            let json = serde_json::to_string_pretty(&facts::collect()).map_err(|error| error.to_string())?;
            println!("{json}");
        }
        Command::Guardian { journal, marker } => return Ok(guardian::watch(&journal, &marker)),
        Command::Undo { journal } => return Ok(guardian::recover(&journal)),
        Command::Watch(words) => return Ok(vcpu_watch::main(&words)),
        Command::Breakdown => return Ok(breakdown::main()),
        Command::Exits(words) => return Ok(kvm_exits::main(&words)),
        Command::Child(words) => return Ok(rpc::main(&words)),
        Command::Worker(task) => return Ok(worker::main(&task)),
        Command::Enter(target) => return enter::main(&target).map_err(|error| format!("enter: {error}")),
        Command::Serve => serve().map_err(|error| error.to_string())?,
        Command::Serial { device, baud } => {
            serial::serve(&device, baud).map_err(|error| format!("{}: {error}", device.display()))?;
        }
        Command::Fleeting => {
            remove_own_file();
            serve().map_err(|error| error.to_string())?;
        }
    }
    Ok(0)
}

/// Removes this program's file, and its directory if that is otherwise empty. So no file stays on the other machine,
/// even if the connection breaks. /proc/self/exe still names the program.
fn remove_own_file() {
    let Ok(path) = std::fs::read_link("/proc/self/exe") else { return };
    let _ = std::fs::remove_file(&path);
    if let Some(dir) = path.parent() {
        let _ = std::fs::remove_dir(dir);
    }
}

fn serve() -> io::Result<()> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    if !stdin.is_terminal() {
        // Ctrl-C goes to the whole group; the host side decides what it means.
        sys::on_signal(libc::SIGINT, sys::OnSignal::Ignore);
    }
    if std::process::id() == 1 {
        sys::on_signal(libc::SIGTERM, sys::OnSignal::Exit);
    }
    sys::on_signal(libc::SIGUSR1, sys::OnSignal::Wake);
    worker::adopt_orphans();
    let mut channel = Channel::new(stdin.as_fd().try_clone_to_owned()?, stdout.as_fd().try_clone_to_owned()?);
    session::serve(&mut channel, Vec::new).map(|_| ())
}
