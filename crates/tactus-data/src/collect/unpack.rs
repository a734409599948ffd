//! Archives of bundles, unpacked in the data set's working directory as far as there is room, in turns.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use tactus_system::Directory;

use super::archive::{self, Room};
use super::find::{self, Found};

/// Archives that are unpacked at once.
const MOST_AT_ONCE: usize = 1024;

/// Archives that were not unpacked yet.
pub struct Archives {
    left: VecDeque<PathBuf>,
    beneath: Directory,
}

impl Archives {
    /// These, which are unpacked beneath that directory.
    pub fn new(archives: Vec<PathBuf>, beneath: Directory) -> Self {
        Self { left: archives.into(), beneath }
    }

    /// Whether all were unpacked.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Unpacks those that there is room for beside each other, the first whatever its size, and adds what is in them.
    pub fn unpack_into(&mut self, found: &mut Found) {
        let mut room = Room::WHOLE;
        for _ in 0..MOST_AT_ONCE {
            let Some(path) = self.left.pop_front() else { return };
            match archive::unpack(&path, &self.beneath, room) {
                Ok((there, left)) => {
                    room = left;
                    let inside = find::within(&path, there);
                    found.candidates.extend(inside.candidates);
                    found.refused.extend(inside.refused);
                }
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge && room != Room::WHOLE => {
                    return self.left.push_front(path);
                }
                Err(error) => found.refused.push((path, format!("it cannot be unpacked: {error}"))),
            }
        }
    }
}
