//! `--detach`: a run that continues after its terminal closes. It is a second process of this program, in a separate
//! session. The first process waits until the run has a bundle, or says why it has none.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tactus_run::Interrupt;
use tactus_system::{Again, Directory, Real, again, bundle_of};

use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::{say, typed};

/// How often it is looked whether the bundle has begun.
const STEP: Duration = Duration::from_millis(50);
/// How the name of a log begins that is not beside its bundle yet, behind a dot.
const UNPLACED: &str = "tactus-log";
/// The most bytes that are shown at a time, and of one line: the rest of a longer line becomes another line.
const LOOK: usize = 256 << 10;
const LINE: usize = 64 << 10;

/// Starts the command of this command line without its terminal; `named`: the bundle that it names.
pub fn detach(named: Option<&Path>) -> Result<Exit, Failure> {
    let log = Log::open(named)?;
    let mut told = Told { log: log.file.try_clone()?, at: log.before, line: Vec::new() };
    let interrupt = Interrupt::listen()?;
    let run = again(words(std::env::args_os().skip(1)), log.file.try_clone()?).map_err(|error| {
        Failure::new(error, "this program was moved or replaced: start it again from its present path")
    });
    let mut run = run.inspect_err(|_| log.remove())?;
    match begun(&mut run, &interrupt, &mut told) {
        Ok(Begun::Bundle(bundle)) => {
            let log = log.beside(&bundle);
            let typed = typed(&bundle);
            let bundle = bundle.display();
            say(format_args!("output of the run from now on: {}", log.display()));
            say(format_args!(
                "the run continues without this terminal: `tactus watch {typed}` follows it, `tactus watch \
                    --stop {typed}` ends it"
            ));
            output::text(&format!("{bundle}\n"))?;
            Ok(Exit::Good)
        }
        Ok(Begun::Ended(code)) => {
            while told.tell(|line| say(line)) {}
            log.remove();
            Ok(code.into())
        }
        Ok(Begun::Interrupted) => {
            run.kill();
            log.remove();
            Err(Failure::say(
                "interrupted before the bundle was begun",
                "no run is in progress: start it \
                again",
            ))
        }
        Err(error) => {
            run.kill();
            Err(error)
        }
    }
}

/// The command line of the process that continues: the same, with `--detached` in place of `--detach`.
fn words(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = given.collect();
    let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    for word in words[..options].iter_mut().filter(|word| *word == "--detach") {
        *word = "--detached".into();
    }
    words
}

/// How the start of the run ended.
enum Begun {
    Bundle(PathBuf),
    Ended(Option<i32>),
    Interrupted,
}

/// Waits for it, and tells meanwhile what it says.
fn begun(run: &mut Again, interrupt: &Interrupt, told: &mut Told) -> Result<Begun, Failure> {
    loop {
        told.tell(|line| say(line));
        if let Some(bundle) = bundle_of(run.process(), &Real) {
            return Ok(Begun::Bundle(bundle));
        }
        if let Some(code) = run.try_wait()? {
            return Ok(Begun::Ended(code));
        }
        if interrupt.asked() {
            return Ok(Begun::Interrupted);
        }
        std::thread::sleep(STEP);
    }
}

/// Shows the run's output as it comes. The run shares the descriptor, and its writes move the position: so the file
/// is read by offsets.
struct Told {
    log: File,
    /// How far it was read, in bytes.
    at: u64,
    /// The beginning of a line that is not whole yet.
    line: Vec<u8>,
}

impl Told {
    /// Tells the lines that were written meanwhile; whether there may be more.
    fn tell(&mut self, mut tell: impl FnMut(&str)) -> bool {
        let (mut bytes, mut taken) = ([0; 8 << 10], 0);
        while taken < LOOK {
            let Some(read) = self.log.read_at(&mut bytes, self.at).ok().filter(|read| *read > 0) else {
                return false;
            };
            (self.at, taken) = (self.at + read as u64, taken + read);
            for byte in &bytes[..read] {
                match byte {
                    b'\n' => self.end_line(&mut tell),
                    _ if self.line.len() >= LINE => {
                        self.end_line(&mut tell);
                        self.line.push(*byte);
                    }
                    _ => self.line.push(*byte),
                }
            }
        }
        true
    }

    fn end_line(&mut self, mut tell: impl FnMut(&str)) {
        tell(String::from_utf8_lossy(&self.line).trim_end());
        self.line.clear();
    }
}

/// The file with what the run says: beside its bundle, which does not hold it, since it grows until the very end.
struct Log {
    dir: Directory,
    name: OsString,
    file: File,
    /// Whether the name is that of its bundle already.
    named: bool,
    /// The length of the log so far: a resumed run appends to the log of its bundle.
    before: u64,
}

impl Log {
    fn open(bundle: Option<&Path>) -> Result<Self, Failure> {
        let place = bundle.map(std::path::absolute).transpose()?;
        let above = place.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
        let own = place.as_deref().and_then(Path::file_name).map(log_of);
        let opened = output::directory(above).and_then(|dir| {
            let (file, name) = match &own {
                Some(name) => (dir.append_private(name)?, name.clone()),
                // Another user who may write here must not be able to prepare a file that is taken for the log.
                None => dir.append_new(UNPLACED)?,
            };
            let before = file.metadata()?.len();
            Ok(Self { dir, name, file, named: own.is_some(), before })
        });
        opened.map_err(|error| {
            let place = above.join(own.unwrap_or_default());
            Failure::say(
                format!("{}: {error}", place.display()),
                "the output of the run is written to a file beside its bundle: name another place with --out \
                    DIR",
            )
        })
    }

    /// Gives it the name of the bundle, which lies beside it; returns where it is.
    fn beside(&self, bundle: &Path) -> PathBuf {
        let at = |name: &OsStr| {
            let path = self.dir.path().join(name);
            std::path::absolute(&path).unwrap_or(path)
        };
        let Some(name) = bundle.file_name().filter(|_| !self.named).map(log_of) else {
            return at(&self.name);
        };
        // A file with that name belongs to another run; and this run continues under any name of its log.
        let renamed = self.dir.rename(&self.name, &name).is_ok();
        at(if renamed { &name } else { &self.name })
    }

    /// The run has ended, and its output was shown.
    fn remove(&self) {
        if self.before == 0 {
            // It stays otherwise, which is no harm.
            let _ = self.dir.remove(&self.name);
        }
    }
}

fn log_of(bundle: &OsStr) -> OsString {
    let mut name = bundle.to_owned();
    name.push(".log");
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detached_process_has_the_same_words_but_one() {
        let words = |given: &str| words(given.split(' ').map(OsString::from));
        assert_eq!(words("run --detach --out a"), ["run", "--detached", "--out", "a"]);
        assert_eq!(words("run --detach -- --detach"), ["run", "--detached", "--", "--detach"]);
    }

    #[test]
    fn a_line_is_said_when_it_is_whole_and_one_without_an_end_in_pieces() {
        let log = tempfile::tempfile().unwrap();
        let mut told = Told { log: log.try_clone().unwrap(), at: 0, line: Vec::new() };
        let mut lines = Vec::new();
        log.write_all_at(b"one\ntwo\nth", 0).unwrap();
        assert!(!told.tell(|line| lines.push(line.to_owned())));
        assert_eq!((&*lines, &*told.line), (&["one".to_owned(), "two".to_owned()][..], &b"th"[..]));
        log.write_all_at(&vec![b'x'; LOOK + 7], 10).unwrap();
        assert!(
            told.tell(|line| lines.push(line.to_owned())),
            "who waits is asked again whether he still does"
        );
        assert!(!told.tell(|line| lines.push(line.to_owned())));
        assert_eq!(lines[2].len(), LINE);
        assert_eq!(lines.iter().map(String::len).sum::<usize>() + told.line.len(), 6 + 2 + LOOK + 7);
    }
}
