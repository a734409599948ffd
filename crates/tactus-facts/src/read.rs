//! Reading files into readings, with as few system calls as possible: there are thousands.

use std::fs;
use std::io;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{Mode, OFlags};
use tactus_model::facts::{Facts, MAX_READING, Reading};
use tactus_model::process_files;

use crate::boot;

/// The collected facts, and the directories that were listed for them.
#[derive(Default)]
pub struct Collector {
    /// The readings so far.
    pub facts: Facts,
    listings: Vec<(String, Rc<[String]>)>,
}

impl Collector {
    /// Keeps a file, as `absent` if it does not exist.
    pub fn file(&mut self, path: &str) {
        self.facts.0.insert(path.to_owned(), read(path).unwrap_or(Reading::Absent));
    }

    /// Keeps a file when there is one.
    pub fn maybe(&mut self, path: String) {
        // Two patterns may meet in one file.
        if !self.facts.0.contains_key(&path)
            && let Some(reading) = read(&path)
        {
            self.facts.0.insert(path, reading);
        }
    }

    /// Keeps every file that a pattern meets: a directory with `*` in it and names below, which may
    /// have some too.
    pub fn pattern(&mut self, directory: &str, names: &[&str]) {
        let mut found = Vec::new();
        self.expand(String::new(), directory, &mut found);
        for directory in found {
            for name in names {
                if name.contains('*') {
                    let mut files = Vec::new();
                    self.expand(directory.clone(), name, &mut files);
                    for file in files {
                        self.maybe(file);
                    }
                } else {
                    self.maybe(format!("{directory}{name}"));
                }
            }
        }
    }

    /// The paths that `pattern` below `done` meets. The last part of it need not be there, unless it
    /// has a star.
    fn expand(&mut self, done: String, pattern: &str, found: &mut Vec<String>) {
        let Some(star) = pattern.find('*') else {
            found.push(done + pattern);
            return;
        };
        let start = pattern[..star].rfind('/').map_or(0, |slash| slash + 1);
        let end = pattern[star..].find('/').map_or(pattern.len(), |slash| star + slash);
        let (before, after) = (&pattern[start..star], &pattern[star + 1..end]);
        let directory = done + &pattern[..start];
        for name in self.list(&directory).iter() {
            let fits = name.strip_prefix(before).is_some_and(|rest| rest.ends_with(after));
            // `cpu*` means the CPUs, not their neighbours `cpuidle` and `cpufreq`.
            let numbered = before != "cpu" || name[before.len()..].bytes().all(|byte| byte.is_ascii_digit());
            if fits && numbered {
                self.expand(format!("{directory}{name}"), &pattern[end..], found);
            }
        }
    }

    /// The names in a directory, in no order; none when it cannot be listed.
    pub fn list(&mut self, directory: &str) -> Rc<[String]> {
        // Search from the end: the same directory is usually asked for again soon.
        if let Some((_, names)) = self.listings.iter().rev().find(|(listed, _)| listed == directory) {
            return Rc::clone(names);
        }
        let names: Rc<[String]> = names(directory).unwrap_or_default().into();
        self.listings.push((directory.to_owned(), Rc::clone(&names)));
        names
    }

    /// Keeps `text`, or the error instead of it.
    pub fn keep_result(&mut self, name: impl Into<String>, text: io::Result<impl Into<String>>) {
        match text {
            Ok(text) => self.facts.keep(name, text),
            Err(error) => {
                self.facts.0.insert(name.into(), refused(&error));
            }
        }
    }
}

/// The names in a directory, in no order.
///
/// # Errors
/// Those of the system.
pub fn names(directory: &str) -> io::Result<Vec<String>> {
    Ok(fs::read_dir(directory)?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// `absent`, or `unreadable` with the reason.
pub fn refused(error: &io::Error) -> Reading {
    if is_absent(error) { Reading::Absent } else { Reading::Unreadable(error.to_string()) }
}

/// Reads a file; `None` if it does not exist.
pub fn read(path: &str) -> Option<Reading> {
    // The device answers with four bytes, not with text.
    if path == "/dev/cpu_dma_latency" {
        let bytes =
            read_some(path).map(|bytes| <[u8; 4]>::try_from(bytes.as_slice()).map(i32::from_ne_bytes));
        return Some(match bytes {
            Ok(Ok(us)) => Reading::Text(us.to_string()),
            Ok(Err(_)) => Reading::Unreadable("not four bytes".into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => Reading::Unreadable(error.to_string()),
        });
    }
    match read_some(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let mut kept = Facts::default();
            // The kernel's printf writes this for a set of CPUs that was never allocated, as in nohz_full.
            let text = text.trim_end_matches(['\n', '\0']);
            let boots;
            let text = if boot::is_of_boot(path) {
                boots = boot::without_secrets(path, text);
                &boots
            } else {
                text
            };
            kept.keep("", if text == "(null)" { "" } else { text });
            kept.0.remove("")
        }
        Err(error) if is_absent(&error) => None,
        Err(error) => Some(Reading::Unreadable(error.to_string())),
    }
}

/// The text of a small file; `None` when it cannot be read.
pub fn text(path: &str) -> Option<String> {
    let bytes = read_some(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\0']).to_owned())
}

/// The beginning of a file of a process, as much of it as is ever looked at.
///
/// # Errors
/// Those of the system.
pub fn of_process(path: &str) -> io::Result<Vec<u8>> {
    process_files::read(Path::new(path))
}

/// The beginning of a file, as much as a reading can hold and a little more, so that it is known to
/// be cut.
fn read_some(path: &str) -> io::Result<Vec<u8>> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
    // On the stack: musl's allocator would map and unmap memory for each of them.
    let mut bytes = [0; MAX_READING + 4];
    let mut length = 0;
    while length < bytes.len() {
        match rustix::io::read(&file, &mut bytes[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(bytes[..length].to_vec())
}

/// No such file, or no such device behind it.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ENXIO | libc::EISDIR)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_meets_the_cpus_and_not_their_neighbours() {
        let mut collector = Collector::default();
        collector.pattern("/sys/devices/system/cpu/cpu*/topology/", &["core_id"]);
        let facts = collector.facts.0;
        assert!(!facts.is_empty());
        assert!(facts.keys().all(|name| !name.contains("cpuidle") && name.ends_with("/topology/core_id")));
    }

    #[test]
    fn stars_may_stand_in_the_directory_and_in_the_name() {
        let root = format!("/tmp/tactus-facts-{}", std::process::id());
        for (path, text) in [("a1/x-0/v", "1\n"), ("a1/x-1/v", "2\n"), ("a2/y", "3"), ("b/x-0/v", "4")] {
            let path = format!("{root}/{path}");
            fs::create_dir_all(path.rsplit_once('/').unwrap().0).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut collector = Collector::default();
        collector.pattern(&format!("{root}/a*/"), &["x-*/v", "y", "z"]);
        fs::remove_dir_all(&root).unwrap();
        let found: Vec<_> =
            collector.facts.0.iter().map(|(name, reading)| (&name[root.len()..], reading)).collect();
        let text = |text: &str| Reading::Text(text.into());
        assert_eq!(found, [("/a1/x-0/v", &text("1")), ("/a1/x-1/v", &text("2")), ("/a2/y", &text("3"))]);
    }

    #[test]
    fn a_missing_file_and_a_directory_give_no_reading() {
        assert_eq!(read("/proc/no/such/file"), None);
        assert_eq!(read("/proc/self"), None);
        assert!(matches!(read("/proc/self/mem"), Some(Reading::Unreadable(_))));
    }
}
