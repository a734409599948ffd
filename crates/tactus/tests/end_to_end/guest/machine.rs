//! A virtual machine whose only program is the command, and what it says.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tactus_environment::kernel::Cpio;

use crate::common::{json, output, tactus};

/// A guest that says nothing more for good is not waited for. Emulated, a boot takes half a minute.
const LIMIT: Duration = Duration::from_secs(240);
const QEMU: &str = "qemu-system-x86_64";
const BUSYBOX: &str = "/usr/bin/busybox";
/// Debian's command that makes the boot menu: here it only notes that it ran.
const UPDATE_GRUB: &[u8] = b"#!/bin/sh\necho ran >>/var/lib/update-grub\n";

/// The parts of a guest.
pub struct Parts {
    kernel: PathBuf,
    files: Vec<(String, Vec<u8>)>,
}

/// A part of what a guest said: its exit code and its text.
pub type Told = BTreeMap<String, (i32, String)>;

/// The parts of a guest, or why it cannot be built.
pub fn parts(dir: &Path) -> Result<Parts, String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("the guest is an x86 one".into());
    }
    let runs = |program: &str, word: &str| Command::new(program).arg(word).output().is_ok();
    if !runs(QEMU, "--version") {
        return Err(format!("{QEMU} is not here"));
    }
    let busybox = fs::read(BUSYBOX).map_err(|error| format!("{BUSYBOX}: {error}"))?;
    if !libraries(Path::new(BUSYBOX)).is_empty() {
        return Err(format!("{BUSYBOX} needs libraries: busybox-static is wanted"));
    }
    let kernels =
        json(&output(tactus().args(["kernel", "list", "--arch", std::env::consts::ARCH, "--json"])));
    let kernel = kernels.as_array().into_iter().flatten().find(|kernel| kernel["preempt_rt"] == true);
    let kernel = kernel.and_then(|kernel| kernel["path"].as_str());
    let kernel = kernel.ok_or("there is no PREEMPT_RT kernel: `tactus kernel fetch` gets one")?;

    let command = Path::new(env!("CARGO_BIN_EXE_tactus"));
    let small = dir.join("tactus");
    let stripped = Command::new("strip").arg("-o").args([&small, command]).status();
    let source = if stripped.is_ok_and(|status| status.success()) { small.as_path() } else { command };
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let mut files = vec![
        ("init".to_owned(), include_bytes!("init.sh").to_vec()),
        ("bin/busybox".to_owned(), busybox),
        ("bin/tactus".to_owned(), read(source)?),
        ("bin/update-grub".to_owned(), UPDATE_GRUB.to_vec()),
        ("etc/default/grub".to_owned(), b"GRUB_CMDLINE_LINUX=\"\"\n".to_vec()),
    ];
    for library in libraries(command) {
        files.push((library.trim_start_matches('/').to_owned(), read(Path::new(&library))?));
    }
    Ok(Parts { kernel: kernel.into(), files })
}

/// The libraries that a program is linked with, and its loader.
fn libraries(program: &Path) -> Vec<String> {
    let Ok(said) = Command::new("ldd").arg(program).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let words = text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(|word| word.trim_end_matches(':').to_owned()).collect()
}

impl Parts {
    /// Has a program of this machine as well, with the libraries that it is linked with.
    pub fn with(mut self, program: &str) -> Self {
        for path in std::iter::once(program.to_owned()).chain(libraries(Path::new(program))) {
            let name = path.trim_start_matches('/').to_owned();
            if !self.files.iter().any(|(own, _)| *own == name) {
                self.files.push((name, fs::read(&path).expect("a program or library")));
            }
        }
        self
    }

    /// Boots it with these parameters, lets it do a stage, and returns what it said.
    #[expect(clippy::print_stderr, reason = "a boot that is tried again is said")]
    pub fn boot(&self, dir: &Path, parameters: &str, stage: &str, state: &[u8]) -> Told {
        let mut all = self.files.clone();
        all.push(("stage".into(), stage.as_bytes().to_vec()));
        all.push(("state.tgz".into(), state.to_vec()));
        let initrd = dir.join("initrd");
        fs::write(&initrd, archive(&all)).expect("the initramfs is written");
        let parameters = format!("console=ttyS0 loglevel=1 panic=-1 {parameters}");
        let mut qemu = Command::new(QEMU);
        qemu.args(["-machine", "q35", "-accel", "tcg", "-smp", "2", "-m", "1G", "-nodefaults"])
            .args(["-display", "none", "-serial", "stdio", "-no-reboot", "-append", &parameters])
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(&initrd)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut console = until_its_end(qemu.spawn().expect("QEMU starts"));
        let mut told = parsed(&console);
        if told.is_empty() {
            // One emulated boot in some fifty stops in the kernel, before anything of ours.
            eprintln!("the guest stopped before its init and is started once more");
            console = until_its_end(qemu.spawn().expect("QEMU starts"));
            told = parsed(&console);
        }
        let lines: Vec<&str> = console.lines().collect();
        let last = lines[lines.len().saturating_sub(40)..].join("\n");
        assert!(told.contains_key("over"), "the guest did not come to its end; its last words:\n{last}");
        told
    }
}

/// Directories come before what is in them.
fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Cpio::new();
    let mut made: Vec<PathBuf> = Vec::new();
    archive.directory("dev");
    archive.device("dev/console", 0o600, 5, 1);
    for (path, bytes) in files {
        let above: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
        for dir in above.into_iter().rev().filter(|dir| !dir.as_os_str().is_empty()) {
            if !made.iter().any(|made| made == dir) {
                archive.directory(&dir.to_string_lossy());
                made.push(dir.to_owned());
            }
        }
        archive.file(path, 0o755, bytes);
    }
    archive.finish()
}

/// Reads a console to its end, and ends what does not end.
fn until_its_end(mut qemu: Child) -> String {
    let mut pipe = qemu.stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).replace('\r', "")
    });
    let until = Instant::now() + LIMIT;
    while qemu.try_wait().expect("QEMU is waited for").is_none() {
        if Instant::now() > until {
            qemu.kill().expect("QEMU is killed");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    reader.join().expect("the console is read")
}

fn parsed(console: &str) -> Told {
    let mut told = Told::new();
    let mut open: Option<(String, String)> = None;
    for line in console.lines() {
        if let Some(name) = line.strip_prefix("@@begin ") {
            open = Some((name.to_owned(), String::new()));
        } else if let Some(end) = line.strip_prefix("@@end ") {
            let (name, code) = end.split_once(' ').unwrap_or((end, ""));
            let (begun, text) = open.take().unwrap_or_default();
            assert_eq!(begun, name, "the console is torn:\n{console}");
            told.insert(begun, (code.parse().unwrap_or(-1), text));
        } else if let Some((_, text)) = &mut open {
            text.push_str(line);
            text.push('\n');
        }
    }
    told
}
