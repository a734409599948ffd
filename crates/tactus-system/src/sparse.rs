//! Files that are longer than the place that they take, and one that takes place for nothing.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use rustix::fs::{FallocateFlags, fallocate, seek};
use rustix::io::Errno;

/// Whether a file has a hole; where the file system does not say, it has none. Reading begins at its beginning then.
///
/// # Errors
/// Those of lseek(2).
pub fn has_hole(mut file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    // A file of no bytes has nothing at its beginning, which is said as an error.
    let hole = match seek(file, rustix::fs::SeekFrom::Hole(0)) {
        Ok(hole) => hole < length,
        Err(Errno::NXIO | Errno::INVAL) => false,
        Err(error) => return Err(error.into()),
    };
    file.seek(SeekFrom::Start(0))?;
    Ok(hole)
}

/// Makes a file this long and reserves its space in the file system.
///
/// # Errors
/// Those of fallocate(2): `StorageFull` when the file system lacks the space. Some of it may be taken then.
pub fn allocate(mut file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            file.seek(SeekFrom::Start(0))?;
            io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
            file.sync_data()
        }
        taken => Ok(taken?),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_hole_is_found_and_what_is_written_is_read_from_its_beginning() {
        let mut file = tempfile::tempfile().unwrap();
        assert!(!has_hole(&file).unwrap(), "it is empty");
        file.write_all(b"text").unwrap();
        assert!(!has_hole(&file).unwrap());
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        file.set_len(1 << 30).unwrap();
        assert!(has_hole(&file).unwrap());
    }
}
