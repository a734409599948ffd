use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use rustix::process::geteuid;

use super::*;

/// A directory to read and write in, and a file outside it that must not change.
fn place() -> (tempfile::TempDir, Directory, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("in")).unwrap();
    let outside = root.path().join("outside");
    fs::write(&outside, "kept").unwrap();
    let dir = Directory::open(&root.path().join("in")).unwrap();
    (root, dir, outside)
}

fn make_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_directory_that_was_put_in_the_place_of_the_one_just_made_is_not_taken() {
    let (root, dir, outside) = place();
    let at = |name: &str| root.path().join("in").join(name);
    let take = |name: &str| dir.just_made(OsStr::new(name), &at(name)).map(drop);
    fs::create_dir(at("ours")).unwrap();
    take("ours").unwrap();
    fs::create_dir(at("open")).unwrap();
    fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(take("open").unwrap_err().to_string().contains("others may write to it"));
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/file"), "").unwrap();
    assert_eq!(take("full").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    symlink(root.path(), at("link")).unwrap();
    assert!(take("link").is_err());
    fs::create_dir(at("theirs")).unwrap();
    if std::os::unix::fs::chown(at("theirs"), Some(65_534), None).is_ok() {
        assert!(take("theirs").unwrap_err().to_string().contains("another user (uid 65534)"));
    }
    assert_eq!(fs::read_to_string(outside).unwrap(), "kept");
}

#[test]
fn a_file_is_written_replaced_added_to_and_read_back() {
    let (_root, dir, _) = place();
    dir.make_dir("a").unwrap();
    dir.make_dir("a").unwrap();
    dir.replace("a/file", b"one").unwrap();
    dir.replace("a/file", b"two").unwrap();
    dir.append("a/file").unwrap().write_all(b"+").unwrap();
    assert_eq!(dir.read("a/file", 4).unwrap(), b"two+");
    assert_eq!(dir.beneath("a").unwrap().names().unwrap(), ["file"]);
    dir.remove("a/file").unwrap();
    dir.remove("a/file").unwrap();
    dir.remove("b/file").unwrap();
    assert_eq!(dir.file("a/file").unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn no_name_leads_out_of_the_directory() {
    let (_root, dir, outside) = place();
    for name in ["../outside", "..", "a/../../outside", outside.to_str().unwrap(), "/etc/passwd", ""] {
        for refused in [
            dir.read(name, 100).map(drop),
            dir.replace(name, b"x"),
            dir.append(name).map(drop),
            dir.anew(name).map(drop),
            dir.make_dir(name),
            dir.remove(name),
        ] {
            assert!(refused.is_err(), "{name}");
        }
    }
    assert_eq!(fs::read_to_string(outside).unwrap(), "kept");
}

#[test]
fn nothing_is_read_or_written_through_a_link_wherever_it_is() {
    let (root, dir, outside) = place();
    symlink(&outside, root.path().join("in/link")).unwrap();
    symlink(root.path(), root.path().join("in/way")).unwrap();
    symlink(root.path().join("new"), root.path().join("in/dangling")).unwrap();
    symlink("/proc/self/fd/0", root.path().join("in/magic")).unwrap();
    for name in ["link", "way/outside", "way/in/link", "dangling", "magic"] {
        let written = [dir.replace(name, b"x"), dir.append(name).map(drop), dir.anew(name).map(drop)];
        for refused in written.into_iter().chain([dir.file(name).map(drop)]) {
            let said = refused.unwrap_err().to_string();
            assert!(said.contains("a symbolic link"), "{name}: {said}");
        }
    }
    assert!(dir.beneath("way").is_err() && dir.make_dir("way").is_err() && dir.make_dir("dangling").is_err());
    dir.remove("link").unwrap();
    assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
    assert!(!root.path().join("new").exists());
}

#[test]
fn what_is_for_others_has_its_mode_whatever_the_mask_is() {
    let (root, dir, _) = place();
    dir.install_for_others("program", b"x", 0o777).unwrap();
    let found = fs::metadata(root.path().join("in/program")).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o777, "which no usual mask lets through");
}

#[test]
fn what_is_no_regular_file_is_refused_at_once_and_never_opened() {
    let (root, dir, _) = place();
    let at = |name: &str| root.path().join("in").join(name);
    make_fifo(&at("fifo"));
    let _socket = UnixListener::bind(at("socket")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    for (name, word) in [("fifo", "a FIFO"), ("socket", "a socket"), ("directory", "a directory")] {
        for refused in [dir.file(name).map(drop), dir.append(name).map(drop), dir.replace(name, b"x")] {
            assert!(refused.unwrap_err().to_string().contains(word), "{name}");
        }
    }
    let devices = Directory::open(Path::new("/dev")).unwrap();
    assert!(devices.read("zero", 10).unwrap_err().to_string().contains("a device"));
    assert!(devices.replace("null", b"x").unwrap_err().to_string().contains("a device"));
}

#[test]
fn a_file_with_a_second_name_is_read_but_not_added_to_and_a_new_one_takes_its_place() {
    let (root, dir, outside) = place();
    fs::hard_link(&outside, root.path().join("in/hard")).unwrap();
    assert_eq!(dir.read("hard", 10).unwrap(), b"kept");
    for refused in [dir.append("hard"), dir.anew("hard")] {
        assert!(refused.unwrap_err().to_string().contains("hard link"));
    }
    dir.replace("hard", b"new").unwrap();
    assert_eq!(
        (fs::read_to_string(&outside).unwrap(), dir.read("hard", 9).unwrap()),
        ("kept".into(), b"new".into())
    );
}

#[test]
fn a_file_that_is_longer_than_its_kind_is_not_read() {
    let (_root, dir, _) = place();
    dir.replace("long", &[b'x'; 11]).unwrap();
    assert_eq!(dir.read("long", 11).unwrap().len(), 11);
    assert_eq!(dir.read("long", 10).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn a_replaced_file_leaves_nothing_beside_it_also_where_it_cannot_be_replaced() {
    let (root, dir, _) = place();
    fs::create_dir(root.path().join("in/taken")).unwrap();
    dir.replace(OsStr::from_bytes(&[b'n'; 250]), b"x").unwrap();
    assert!(dir.replace("taken", b"x").is_err());
    assert_eq!(dir.names().unwrap().len(), 2);
}

#[test]
fn a_directory_is_made_by_us_or_not_at_all() {
    let (root, _, _) = place();
    let new = root.path().join("x/y/new");
    Directory::create(&new).unwrap().is_private().unwrap();
    symlink(root.path().join("z"), root.path().join("planted")).unwrap();
    if std::os::unix::fs::lchown(root.path().join("planted"), Some(65_534), None).is_ok() {
        let below = root.path().join("planted/below");
        for refused in [Directory::create(&below).map(drop), Directory::reach(&below).map(drop)] {
            assert!(refused.unwrap_err().to_string().contains("a link of another user (uid 65534)"));
        }
    }
    for there in [new, root.path().join("planted"), root.path().join("outside")] {
        assert_eq!(Directory::create(&there).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
    assert!(!root.path().join("z").exists());
}

#[test]
fn a_directory_that_others_may_write_to_is_not_private() {
    let (root, dir, _) = place();
    dir.is_private().unwrap();
    for mode in [0o777, 0o1777, 0o775] {
        fs::set_permissions(root.path().join("in"), fs::Permissions::from_mode(mode)).unwrap();
        assert!(dir.is_private().unwrap_err().to_string().contains("others may write"));
    }
    let root = Directory::open(Path::new("/")).unwrap();
    let mine = fs::metadata("/").unwrap().uid() == geteuid().as_raw();
    assert_eq!(root.is_private().is_ok(), mine);
}

#[test]
fn what_was_opened_stays_what_it_was_when_its_name_is_given_to_another() {
    let (root, dir, _) = place();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("victim")).unwrap();
    fs::write(at("victim/console.log"), "kept").unwrap();
    fs::rename(at("in"), at("moved")).unwrap();
    symlink(at("victim"), at("in")).unwrap();
    let mut log = dir.anew("console.log").unwrap();
    log.write_all(b"words").unwrap();
    dir.replace("report.html", b"x").unwrap();
    assert_eq!(fs::read_to_string(at("victim/console.log")).unwrap(), "kept");
    assert_eq!(fs::read_dir(at("victim")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(at("moved/console.log")).unwrap(), "words");
}

#[test]
fn a_walk_names_everything_as_it_is() {
    let (root, dir, outside) = place();
    dir.make_dir("a").unwrap();
    dir.replace("a/file", b"x").unwrap();
    symlink(&outside, root.path().join("in/a/link")).unwrap();
    fs::hard_link(&outside, root.path().join("in/hard")).unwrap();
    let found = dir.walk().unwrap();
    let shown: Vec<_> = found.iter().map(|e| (e.path.to_str().unwrap(), e.kind, e.hard_linked)).collect();
    let wanted = [
        ("a", Kind::Directory, shown[0].2),
        ("hard", Kind::File, true),
        ("a/file", Kind::File, false),
        ("a/link", Kind::Other("a symbolic link"), false),
    ];
    assert_eq!(shown, wanted);
}

#[test]
fn directories_without_end_end_a_walk() {
    let (_root, dir, _) = place();
    let mut name = PathBuf::new();
    for _ in 0..DEEPEST + 2 {
        name.push("d");
        dir.make_dir(&name).unwrap();
    }
    assert!(dir.walk().unwrap_err().to_string().contains("too deep"));
}

#[test]
fn a_tree_is_removed_with_all_that_is_in_it_and_links_lead_nowhere() {
    let (root, dir, outside) = place();
    fs::create_dir_all(root.path().join("in/tree/a/b")).unwrap();
    fs::write(root.path().join("in/tree/a/b/c"), "x").unwrap();
    symlink(root.path(), root.path().join("in/tree/a/out")).unwrap();
    dir.remove_tree("tree").unwrap();
    assert!(dir.entry("tree").is_err() && outside.exists());
    dir.remove_tree("tree").unwrap();
    symlink(root.path(), root.path().join("in/link")).unwrap();
    assert!(dir.remove_tree("link").is_err());
    assert!(outside.exists());
}

#[test]
fn a_file_that_must_be_new_is_never_one_that_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let open = Directory::open(dir.path()).unwrap();
    let (mut one, first) = open.append_new("log").unwrap();
    let (_, second) = open.append_new("log").unwrap();
    assert_ne!(first, second);
    assert!(first.to_str().unwrap().starts_with(".log."), "{first:?}");
    one.write_all(b"one").unwrap();
    one.try_clone().unwrap().write_all(b" two").unwrap();
    assert_eq!(open.read(&first, 100).unwrap(), b"one two");
    assert_eq!(open.read(&second, 100).unwrap(), b"");
}

#[test]
fn what_is_renamed_comes_from_beneath_the_directory_and_stays_there() {
    let (root, dir, outside) = place();
    let at = |name: &str| root.path().join("in").join(name);
    fs::create_dir(at("a")).unwrap();
    fs::create_dir(at("b")).unwrap();
    fs::write(at("a/file"), "text").unwrap();
    fs::write(at("b/theirs"), "theirs").unwrap();
    assert_eq!(dir.rename("a/file", "b/theirs").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(at("b/theirs")).unwrap(), "theirs");
    dir.rename("a/file", "b/other").unwrap();
    assert_eq!(fs::read_to_string(at("b/other")).unwrap(), "text");
    symlink(root.path(), at("link")).unwrap();
    assert!(dir.rename("link/outside", "b/taken").is_err());
    assert!(dir.rename("b/other", "link/put").is_err());
    assert!(dir.rename("../outside", "b/taken").is_err());
    dir.rename("link", "b/link").unwrap();
    assert!(fs::symlink_metadata(at("b/link")).unwrap().is_symlink(), "a link is renamed itself");
    assert_eq!(fs::read_to_string(outside).unwrap(), "kept");
}

#[test]
fn what_others_can_write_to_is_not_added_to_and_what_they_can_read_is_no_secret() {
    let (root, dir, _) = place();
    let at = root.path().join("in/log");
    let mut log = dir.append_private("log").unwrap();
    log.write_all(b"own").unwrap();
    fs::set_permissions(&at, fs::Permissions::from_mode(0o644)).unwrap();
    dir.append_private("log").unwrap().write_all(b" more").unwrap();
    assert!(dir.read_secret("log", 100).unwrap_err().to_string().contains("others may read it"));
    fs::set_permissions(&at, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(dir.read_secret("log", 100).unwrap(), b"own more");
    fs::set_permissions(&at, fs::Permissions::from_mode(0o664)).unwrap();
    assert!(dir.append_private("log").unwrap_err().to_string().contains("others may write to it"));
    fs::set_permissions(&at, fs::Permissions::from_mode(0o600)).unwrap();
    // Root alone can give a file away.
    if std::os::unix::fs::chown(&at, Some(65_534), None).is_ok() {
        assert!(dir.append_private("log").unwrap_err().to_string().contains("belongs to another user"));
        assert!(dir.read_secret("log", 100).is_err());
    }
}
