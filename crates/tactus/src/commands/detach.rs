//! `--detach`: a run that outlives its terminal is this program once more, in a session of its own. Who started it waits
//! until it has a bundle, or says why it has none.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tactus_run::Interrupt;
use tactus_system::{Again, Directory, Real, System, again, runs};

use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

/// How often it is looked whether the bundle has begun.
const STEP: Duration = Duration::from_millis(50);
/// How the name of a log begins that is not beside its bundle yet, behind a dot.
const UNPLACED: &str = "tactus-log";

/// Starts the command of this command line without its terminal; `named`: the bundle that it names.
pub fn detach(named: Option<&Path>) -> Result<Exit, Failure> {
    let log = Log::open(named)?;
    let mut told = Told { log: log.reader()?, line: Vec::new() };
    let interrupt = Interrupt::listen()?;
    let run = again(words(std::env::args_os().skip(1)), log.file.try_clone()?).map_err(|error| {
        Failure::new(
            error,
            "this program was moved or replaced meanwhile: start it again from where it is now",
        )
    });
    let mut run = run.inspect_err(|_| log.remove())?;
    match begun(&mut run, &interrupt, &mut told) {
        Ok(Begun::Bundle(bundle)) => {
            let log = log.beside(&bundle);
            let bundle = bundle.display();
            say(format_args!("what the run says from now on: {}", log.display()));
            say(format_args!(
                "it goes on without this terminal: `tactus attach {bundle}` follows it, `tactus stop {bundle}` ends it"
            ));
            output::text(&format!("{bundle}\n"))?;
            Ok(Exit::Good)
        }
        Ok(Begun::Ended(code)) => {
            told.say();
            log.remove();
            Ok(code.into())
        }
        Ok(Begun::Interrupted) => {
            run.kill();
            log.remove();
            Err(Failure::say("interrupted before the bundle was begun", "nothing goes on"))
        }
        Err(error) => {
            run.kill();
            Err(error)
        }
    }
}

/// The words of the process that goes on: the same, but that it is the one.
fn words(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = given.collect();
    let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    for word in words[..options].iter_mut().filter(|word| *word == "--detach") {
        *word = "--detached".into();
    }
    words
}

/// What came of its beginning.
enum Begun {
    Bundle(PathBuf),
    Ended(Option<i32>),
    Interrupted,
}

/// Waits for it, and tells meanwhile what it says.
fn begun(run: &mut Again, interrupt: &Interrupt, told: &mut Told<impl BufRead>) -> Result<Begun, Failure> {
    loop {
        told.say();
        let own = runs(&Real).into_iter().find(|(_, found)| found.process() == run.process());
        if let Some((bundle, _)) = own {
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

/// What the run says, as it comes.
struct Told<R> {
    log: R,
    /// The beginning of a line that is not whole yet.
    line: Vec<u8>,
}

impl<R: BufRead> Told<R> {
    /// Says the lines that were written meanwhile.
    fn say(&mut self) {
        while self.log.read_until(b'\n', &mut self.line).is_ok_and(|length| length > 0) {
            if self.line.ends_with(b"\n") {
                say(String::from_utf8_lossy(&self.line).trim_end());
                self.line.clear();
            }
        }
    }
}

/// The file with what the run says: beside its bundle, which does not hold it, since it grows until the very end.
struct Log {
    dir: Directory,
    name: OsString,
    file: File,
    /// Whether the name is that of its bundle already.
    named: bool,
    /// How long it was: a run that goes on with a bundle goes on with its log.
    before: u64,
}

impl Log {
    fn open(bundle: Option<&Path>) -> Result<Self, Failure> {
        let place = bundle.map(std::path::absolute).transpose()?;
        let above = place.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
        let own = place.as_deref().and_then(Path::file_name).map(log_of);
        let opened = output::directory(above).and_then(|dir| {
            let (file, name) = match &own {
                Some(name) => (dir.append(name)?, name.clone()),
                // Whoever may write here must not have a file ready that is taken for it.
                None => dir.append_new(UNPLACED)?,
            };
            let before = file.metadata()?.len();
            Ok(Self { dir, name, file, named: own.is_some(), before })
        });
        opened.map_err(|error| {
            let place = above.join(own.unwrap_or_default());
            Failure::say(
                format!("{}: {error}", place.display()),
                "what the run says is written beside its bundle: name another place with --out DIR",
            )
        })
    }

    /// What is written to it from now on.
    fn reader(&self) -> Result<impl BufRead + use<>, Failure> {
        let mut file = self.dir.file(&self.name)?;
        file.seek(SeekFrom::Start(self.before))?;
        Ok(BufReader::new(file))
    }

    /// Gives it the name of the bundle, which lies beside it; returns where it is.
    fn beside(&self, bundle: &Path) -> PathBuf {
        let now = self.dir.path().join(&self.name);
        let now = std::path::absolute(&now).unwrap_or(now);
        let Some(name) = bundle.file_name().filter(|_| !self.named) else { return now };
        let place = now.with_file_name(log_of(name));
        // Whatever is there is somebody's; and the run goes on whatever its log is called.
        if !Real.exists(&place) && Real.rename(&now, &place).is_ok() { place } else { now }
    }

    /// Nothing goes on, and what was said was told.
    fn remove(&self) {
        if self.before == 0 {
            // It stays otherwise, which is no harm.
            let _ = self.dir.remove(&self.name);
        }
    }
}

fn log_of(bundle: &std::ffi::OsStr) -> OsString {
    let mut name = bundle.to_owned();
    name.push(".log");
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_that_goes_on_has_the_same_words_but_one() {
        let words = |given: &str| words(given.split(' ').map(OsString::from));
        assert_eq!(words("run --detach --out a"), ["run", "--detached", "--out", "a"]);
        assert_eq!(words("run --detach -- --detach"), ["run", "--detached", "--", "--detach"]);
    }

    #[test]
    fn a_line_is_said_when_it_is_whole() {
        let mut told = Told { log: "one\ntwo\nth".as_bytes(), line: Vec::new() };
        told.say();
        assert_eq!(told.line, b"th");
    }
}
