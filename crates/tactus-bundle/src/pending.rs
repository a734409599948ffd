//! The ticks that no interval of a row's log has yet, on disk: what would go with the run if it died now.

use std::fs::File;
use std::io;

use tactus_model::message::Tick;
use tactus_system::Directory;

use super::lines::json_line;
use super::recover::PENDING;
use super::room::{Room, is_full};
use super::{BundleError, limits};

/// The file may be twice as long as what waits, and so much more, before what no longer waits is taken out of it.
const SLACK: usize = 1 << 20;

/// Writes them. Series are known by their numbers.
#[derive(Debug)]
pub struct PendingLog {
    dir: Directory,
    room: Room,
    file: Option<File>,
    /// The lines of the file: the series of each, and its length.
    lines: Vec<(usize, usize)>,
    bytes: usize,
    /// Lines of each series that wait, and their bytes. They are its last ones.
    waiting: Vec<(usize, usize)>,
}

impl PendingLog {
    /// In the directory of a row. The file appears with the first tick.
    pub fn new(dir: Directory, room: Room) -> Self {
        Self { dir, room, file: None, lines: Vec::new(), bytes: 0, waiting: Vec::new() }
    }

    /// Appends a tick of a series, if there is room.
    pub fn add(&mut self, series: usize, tick: &Tick) -> Result<(), BundleError> {
        self.write(series, tick).map_err(BundleError::of(&self.dir, PENDING))
    }

    fn write(&mut self, series: usize, tick: &Tick) -> io::Result<()> {
        let line = json_line(tick)?;
        let anew = || {
            let file = self.dir.append(PENDING)?;
            file.set_len(0)?;
            Ok(file)
        };
        if !self.room.append_to(&mut self.file, anew, &line)? {
            return Ok(());
        }
        self.lines.push((series, line.len()));
        self.bytes += line.len();
        if self.waiting.len() <= series {
            self.waiting.resize(series + 1, (0, 0));
        }
        let (lines, bytes) = &mut self.waiting[series];
        (*lines, *bytes) = (*lines + 1, *bytes + line.len());
        Ok(())
    }

    /// The row's log has all ticks of a series now.
    pub fn logged(&mut self, series: usize) -> Result<(), BundleError> {
        if let Some(waiting) = self.waiting.get_mut(series) {
            *waiting = (0, 0);
        }
        let waiting: usize = self.waiting.iter().map(|(_, bytes)| bytes).sum();
        let done = match &self.file {
            Some(file) if waiting == 0 => file.set_len(0).map(|()| {
                self.lines.clear();
                self.bytes = 0;
            }),
            // Series may never come to the ends of their intervals together: one has lost a tick, or ended early.
            Some(_) if self.bytes > 2 * waiting + SLACK => match self.shorten() {
                // It stays as long as it is.
                Err(error) if is_full(&error) => Ok(()),
                done => done,
            },
            _ => Ok(()),
        };
        done.map_err(BundleError::of(&self.dir, PENDING))
    }

    /// Keeps the lines that wait, in their order.
    fn shorten(&mut self) -> io::Result<()> {
        let bytes = self.dir.read(PENDING, limits::LOG)?;
        let mut logged = vec![0_usize; self.waiting.len()];
        self.lines.iter().for_each(|(series, _)| logged[*series] += 1);
        logged.iter_mut().zip(&self.waiting).for_each(|(all, (waiting, _))| *all -= waiting);
        let (mut rest, mut kept, mut lines) = (bytes.as_slice(), Vec::new(), Vec::new());
        for (series, length) in &self.lines {
            let (line, after) = rest.split_at_checked(*length).ok_or(io::ErrorKind::UnexpectedEof)?;
            rest = after;
            if logged[*series] > 0 {
                logged[*series] -= 1;
            } else {
                kept.extend_from_slice(line);
                lines.push((*series, *length));
            }
        }
        self.dir.replace(PENDING, &kept)?;
        self.file = Some(self.dir.append(PENDING)?);
        (self.lines, self.bytes) = (lines, kept.len());
        Ok(())
    }

    /// Makes what was written last through a power cut.
    pub fn sync(&self) -> Result<(), BundleError> {
        let Some(file) = &self.file else { return Ok(()) };
        self.room.may(file.sync_data()).map(drop).map_err(BundleError::of(&self.dir, PENDING))
    }

    /// Takes the file away: the row's log has everything.
    pub fn finish(self) -> Result<(), BundleError> {
        match self.file {
            Some(_) => self.dir.remove(PENDING).map_err(BundleError::of(&self.dir, PENDING)),
            None => Ok(()),
        }
    }
}
