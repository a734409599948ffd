//! Removing, in a file system with links and mounts that is not there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::undo::remove::mounts_at;
use crate::undo::{Files, remove};

#[derive(Clone, Debug, Default)]
struct Disk {
    /// Directories (`true`) and files.
    entries: RefCell<BTreeMap<PathBuf, bool>>,
    links: BTreeMap<PathBuf, PathBuf>,
    /// In the order in which they were mounted.
    mounts: RefCell<Vec<PathBuf>>,
    /// Removed paths that belong to another user.
    harm: RefCell<Vec<PathBuf>>,
    untouchable: Option<ErrorKind>,
    errno: Option<i32>,
}

impl Disk {
    fn with(entries: &[&str]) -> Self {
        let is_directory = |path: &&str| path.ends_with('/');
        let entries = entries.iter().map(|path| (PathBuf::from(path), is_directory(path))).collect();
        Self { entries: RefCell::new(entries), ..Self::default() }
    }

    fn mounted(self, points: &[&str]) -> Self {
        self.mounts.borrow_mut().extend(points.iter().map(PathBuf::from));
        self
    }

    fn left(&self) -> Vec<String> {
        self.entries.borrow().keys().map(|path| path.display().to_string()).collect()
    }

    fn take(&self, path: &Path) -> io::Result<()> {
        if let Some(errno) = self.errno {
            return Err(io::Error::from_raw_os_error(errno));
        }
        if let Some(kind) = self.untouchable {
            return Err(kind.into());
        }
        let mounted: Vec<PathBuf> =
            self.mounts.borrow().iter().filter(|point| point.starts_with(path)).cloned().collect();
        self.harm.borrow_mut().extend(mounted);
        let before = self.entries.borrow().len();
        self.entries.borrow_mut().retain(|entry, _| !entry.starts_with(path));
        if self.entries.borrow().len() == before { Err(ErrorKind::NotFound.into()) } else { Ok(()) }
    }
}

fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.to_str().unwrap().bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => text.push_str(&format!("\\{byte:03o}")),
            _ => text.push(char::from(byte)),
        }
    }
    text
}

impl Files for Disk {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        let link = path.ancestors().find_map(|dir| Some((dir, self.links.get(dir)?)));
        Ok(match link {
            Some((dir, to)) => to.join(path.strip_prefix(dir).unwrap()),
            None => path.to_owned(),
        })
    }

    fn mountinfo(&self) -> io::Result<Vec<u8>> {
        let line = |point: &PathBuf| format!("22 1 0:5 / {} rw shared:1 - tmpfs none rw\n", escaped(point));
        Ok(self.mounts.borrow().iter().map(line).collect::<String>().into_bytes())
    }

    fn is_directory(&self, path: &Path) -> io::Result<bool> {
        if self.links.contains_key(path) {
            return Ok(false);
        }
        self.entries.borrow().get(path).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.take(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.take(path)
    }

    fn unmount(&self, path: &Path) -> io::Result<()> {
        let mut mounts = self.mounts.borrow_mut();
        let at = mounts.iter().rposition(|point| point == path).ok_or(ErrorKind::InvalidInput)?;
        mounts.remove(at);
        Ok(())
    }
}

#[test]
fn what_is_mounted_inside_goes_innermost_first_and_keeps_its_files() {
    let disk =
        Disk::with(&["/w/", "/w/run/", "/w/run/f", "/x/"]).mounted(&["/", "/w/run", "/w/run/a b", "/x"]);
    remove(Path::new("/w/run"), &disk).unwrap();
    assert_eq!(disk.left(), ["/w/", "/x/"]);
    assert_eq!(*disk.mounts.borrow(), [Path::new("/"), Path::new("/x")]);
    assert!(disk.harm.borrow().is_empty());
}

#[test]
fn a_link_is_removed_and_not_what_it_points_to() {
    let mut disk = Disk::with(&["/w/", "/w/link", "/kept/", "/kept/f"]);
    disk.links = BTreeMap::from([("/w/link".into(), "/kept".into())]);
    remove(Path::new("/w/link"), &disk).unwrap();
    assert_eq!(disk.left(), ["/kept/", "/kept/f", "/w/"]);
}

#[test]
fn a_path_through_a_link_is_looked_up_where_its_mounts_are() {
    let mut disk = Disk::with(&["/data/", "/data/run/"]).mounted(&["/data/run/m"]);
    disk.links = BTreeMap::from([("/var".into(), "/data".into())]);
    remove(Path::new("/var/run"), &disk).unwrap();
    assert!(disk.mounts.borrow().is_empty() && disk.harm.borrow().is_empty());
    assert_eq!(disk.left(), ["/data/"]);
}

#[test]
fn of_another_root_one_file_is_removed_and_nothing_of_our_own() {
    let mut disk = Disk::with(&["/run/", "/run/x", "/proc/7/root/run/x"]).mounted(&["/run"]);
    // As realpath(3) returns it: the other root looks like this process's.
    disk.links = BTreeMap::from([("/proc/7/root".into(), "/".into())]);
    remove(Path::new("/proc/7/root/run/x"), &disk).unwrap();
    assert_eq!(disk.left(), ["/run/", "/run/x"]);
    assert_eq!(disk.mounts.borrow().len(), 1);
    disk.errno = Some(3);
    remove(Path::new("/proc/7/root/run/x"), &disk).unwrap();
    disk.errno = Some(21);
    assert!(remove(Path::new("/proc/7/root/run"), &disk).is_err(), "a directory of another root stays");
}

#[test]
fn the_root_is_not_removed_and_what_is_not_there_is_no_error() {
    let disk = Disk::with(&["/w/"]).mounted(&["/"]);
    assert_eq!(remove(Path::new("/"), &disk).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(remove(Path::new(""), &disk).unwrap_err().kind(), ErrorKind::InvalidInput);
    remove(Path::new("/no/such"), &disk).unwrap();
    assert_eq!((disk.left(), disk.mounts.borrow().len()), (vec!["/w/".to_owned()], 1));
}

#[test]
fn what_cannot_be_removed_is_an_error() {
    let mut disk = Disk::with(&["/w/"]);
    disk.untouchable = Some(ErrorKind::ReadOnlyFilesystem);
    assert_eq!(remove(Path::new("/w"), &disk).unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
}

fn any_path() -> impl Strategy<Value = PathBuf> {
    proptest::collection::vec("[ab \\\\\t\n]{1,2}", 1..4)
        .prop_map(|parts| PathBuf::from("/".to_owned() + &parts.join("/")))
}

proptest! {
    #[test]
    fn nothing_but_the_path_goes_and_nothing_that_is_mounted(
        entries in proptest::collection::btree_map(any_path(), any::<bool>(), 0..12),
        mounts in proptest::collection::vec(any_path(), 0..6),
        path in any_path(),
    ) {
        let disk = Disk {
            entries: RefCell::new(entries.clone()), mounts: RefCell::new(mounts.clone()), ..Disk::default()
        };
        remove(&path, &disk).unwrap();
        prop_assert!(disk.harm.borrow().is_empty());
        let there = entries.contains_key(&path);
        let stays = entries.keys().filter(|entry| !there || !entry.starts_with(&path));
        let stays: Vec<_> = stays.map(|entry| entry.display().to_string()).collect();
        let left = disk.left();
        prop_assert_eq!(left, stays);
        let others: Vec<_> = mounts.into_iter().filter(|point| !point.starts_with(&path)).collect();
        prop_assert_eq!(&*disk.mounts.borrow(), &others);
        // Again: there is nothing to remove.
        remove(&path, &disk).unwrap();
    }

    #[test]
    fn a_mount_point_is_read_as_the_kernel_writes_it(point in any_path()) {
        let line = format!("22 1 0:5 / {} rw - tmpfs none rw\n", escaped(&point));
        prop_assert_eq!(mounts_at(line.as_bytes(), &point), vec![point]);
    }

    #[test]
    fn no_table_of_mounts_makes_the_reader_panic(table: Vec<u8>, text in "[\\\\0-9 /a\n]{0,80}") {
        let _ = mounts_at(&table, Path::new("/"));
        let _ = mounts_at(text.as_bytes(), Path::new("/"));
    }
}
