//! The probe as the whole system of a guest: PID 1 of an initramfs.
//!
//! It mounts file systems, loads the modules that the host side put into the initramfs, finds its channel, serves the
//! session, and always powers off at the end. The channel is a virtio port, or the one named in the initramfs: the
//! console, or the kernel's log if the console is not a terminal. If the guest cannot receive messages, the initramfs
//! contains them.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, mount};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::system::{RebootCommand, finit_module, reboot};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tactus_model::message::Note;

use crate::channel::Channel;
use crate::{session, sys};

/// Paths of the modules in the initramfs, in the order in which they must be loaded.
const MODULES: &str = "/modules.list";
/// The file that names the channel: `console`, or `kmsg` and bytes per second.
const CHANNEL: &str = "/channel";
/// The messages to a guest that cannot receive them.
const INPUT: &str = "/input";
/// Further mounts that the host side asks for: kind and place.
const MOUNTS: &str = "/mounts.list";
/// Name of the virtio port.
const PORT: &str = "org.tactus.probe";
/// The kernel's directory of the ports.
const PORTS: &str = "/sys/class/virtio-ports";
/// How long the port may take to appear, or the host side to listen.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to look for the port.
const LOOK: Duration = Duration::from_millis(2);

/// Mounts without which nothing can be found.
const FIRST: &[(&str, &str)] = &[("proc", "/proc"), ("devtmpfs", "/dev"), ("sysfs", "/sys")];
/// Mounts that can wait until after the first word.
const LATER: &[(&str, &str)] = &[
    ("tracefs", "/sys/kernel/tracing"),
    ("debugfs", "/sys/kernel/debug"),
    ("tmpfs", "/dev/shm"),
    ("tmpfs", "/tmp"),
];

/// Whether this process is the whole system of a guest, rather than of a container: there, `/proc`
/// is mounted before PID 1 begins.
pub fn is_whole_system() -> bool {
    std::process::id() == 1 && !Path::new("/proc/self").exists()
}

/// Speaks with the host side over the virtio port, and powers off. Does not return.
pub fn run() -> ! {
    // Not even a fault of the probe may leave a guest standing.
    std::panic::set_hook(Box::new(|fault| {
        crate::stderr::say!("tactus-probe: {fault}; powering off");
        rustix::fs::sync();
        let _ = reboot(RebootCommand::PowerOff);
    }));
    match speak() {
        Ok(()) => {}
        // The console is the last thing a guest can speak to.
        Err(words) => crate::stderr::say!("tactus-probe: {words}; powering off"),
    }
    rustix::fs::sync();
    let _ = reboot(RebootCommand::PowerOff);
    // PID 1 must not return: the kernel would panic.
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn speak() -> Result<(), String> {
    for (kind, target) in FIRST {
        attach(kind, target).map_err(|error| format!("{target} could not be mounted: {error}"))?;
    }
    let notes = load_modules();
    let found = match fs::read_to_string(CHANNEL) {
        Ok(words) => console(&words),
        Err(_) => port().map(|(from, to)| Channel::new(from, to)),
    };
    let mut channel = found.map_err(|words| {
        let notes: Vec<_> = notes.iter().map(|note| note.text.as_str()).collect();
        format!("{words}; {}", notes.join("; "))
    })?;
    sys::on_signal(libc::SIGUSR1, sys::OnSignal::Wake);
    let late = || {
        let mut notes = notes;
        let more = fs::read_to_string(MOUNTS).unwrap_or_default();
        let more = more.lines().filter_map(|line| line.split_once(' '));
        for (kind, target) in LATER.iter().copied().chain(more) {
            if let Err(error) = attach(kind, target) {
                notes.push(Note::info(format!("{target} could not be mounted: {error}")));
            }
        }
        notes
    };
    session::serve(&mut channel, late).map(|_| ()).map_err(|error| format!("the channel broke: {error}"))
}

fn attach(kind: &str, target: &str) -> io::Result<()> {
    fs::create_dir_all(target)?;
    match mount(kind, target, kind, MountFlags::empty(), None) {
        // devtmpfs may have been mounted by the kernel itself.
        Ok(()) | Err(rustix::io::Errno::BUSY) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn load_modules() -> Vec<Note> {
    let list = fs::read_to_string(MODULES).unwrap_or_default();
    let mut notes = Vec::new();
    for path in list.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Err(error) = load_module(path) {
            notes.push(Note::obstacle(
                format!("module {path} could not be loaded: {error}"),
                "use modules of exactly the kernel that was booted",
            ));
        }
    }
    notes
}

fn load_module(path: &str) -> io::Result<()> {
    let file = fs::File::open(path)?;
    match finit_module(&file, c"", 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The channel that the initramfs names.
fn console(words: &str) -> Result<Channel, String> {
    let mut words = words.split_whitespace();
    let rate = match words.next() {
        Some("kmsg") => words.next().and_then(|rate| rate.parse::<u32>().ok()),
        _ => None,
    };
    // The kernel's own words would cut frames in two. Where this fails they do, and are counted.
    let _ = fs::write("/proc/sys/kernel/printk", "1");
    let path = if rate.is_some() { "/dev/kmsg" } else { "/dev/console" };
    let failed = |error: rustix::io::Errno| format!("{path} could not be opened: {error}");
    let flags = OFlags::CLOEXEC | OFlags::NOCTTY;
    if let Some(rate) = rate {
        // Else only ten records in five seconds get through; and no time before each.
        let _ = fs::write("/proc/sys/kernel/printk_devkmsg", "on\n");
        let _ = fs::write("/sys/module/printk/parameters/time", "N");
        let log = rustix::fs::open(path, flags | OFlags::WRONLY, Mode::empty()).map_err(failed)?;
        return Ok(Channel::new(said_before()?, log).into_log(rate));
    }
    let console = rustix::fs::open(path, flags | OFlags::RDWR, Mode::empty()).map_err(failed)?;
    if let Ok(mut terminal) = tcgetattr(&console) {
        terminal.make_raw();
        let _ = tcsetattr(&console, OptionalActions::Now, &terminal);
    }
    let from = match Path::new(INPUT).exists() {
        true => said_before()?,
        false => console.try_clone().map_err(|error| format!("{path}: {error}"))?,
    };
    Ok(Channel::new(from, console))
}

/// A stream with the messages of the initramfs, which never ends.
fn said_before() -> Result<OwnedFd, String> {
    let said = fs::read(INPUT).unwrap_or_default();
    let (from, to) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| format!("no pipe: {error}"))?;
    // A job has some hundred bytes, and a pipe holds 64 KiB.
    rustix::io::write(&to, &said).map_err(|error| format!("{INPUT}: {error}"))?;
    std::mem::forget(to);
    Ok(from)
}

/// The port's device, opened for reading and for writing, once the host side listens.
fn port() -> Result<(OwnedFd, OwnedFd), String> {
    let until = Instant::now() + PATIENCE;
    let path = loop {
        if let Some(path) = find_port() {
            break path;
        }
        if Instant::now() >= until {
            return Err(format!(
                "no virtio port named {PORT} appeared in {PORTS} within {} s",
                PATIENCE.as_secs()
            ));
        }
        std::thread::sleep(LOOK);
    };
    let device = loop {
        match rustix::fs::open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Ok(device) => break device,
            Err(rustix::io::Errno::NOENT) if Instant::now() < until => std::thread::sleep(LOOK),
            Err(error) => return Err(format!("{path} could not be opened: {error}")),
        }
    };
    // Until the host side has connected, reading would say that the stream has ended.
    loop {
        let mut descriptors = [PollFd::new(&device, PollFlags::OUT)];
        let limit = Timespec { tv_sec: 0, tv_nsec: 0 };
        let connected = poll(&mut descriptors, Some(&limit)).is_ok()
            && !descriptors[0].revents().contains(PollFlags::HUP);
        if connected {
            break;
        }
        if Instant::now() >= until {
            return Err(format!("nothing listens at {path}"));
        }
        std::thread::sleep(LOOK);
    }
    let other = device.try_clone().map_err(|error| format!("{path}: {error}"))?;
    Ok((device, other))
}

fn find_port() -> Option<String> {
    let entries = fs::read_dir(PORTS).ok()?;
    entries.flatten().find_map(|entry| {
        let name = fs::read_to_string(entry.path().join("name")).ok()?;
        (name.trim() == PORT).then(|| format!("/dev/{}", entry.file_name().to_string_lossy()))
    })
}
