//! The daemon of these tests, and what tactus leaves in it.

mod daemon;

use std::fs;
use std::path::Path;

pub use daemon::Daemon;

#[test]
fn a_daemon_of_our_own_leaves_nothing_behind() {
    let _turn = super::alone();
    let Some(daemon) = Daemon::start() else { return super::skipped("docker: there is no dockerd") };
    let (dir, made) = (daemon.dir.path().to_owned(), daemon.made.clone());
    drop(daemon);
    assert!(!dir.exists());
    let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&name), "{mounts}");
    assert_eq!(super::leftovers::commands(&name), [] as [String; 0]);
    for path in made {
        assert!(!Path::new(path).exists(), "{path}");
    }
}

#[test]
fn an_image_lasts_as_long_as_its_run_and_no_container_longer_than_it_is_used() {
    let _turn = super::alone();
    let Some(daemon) = Daemon::start() else { return super::skipped("docker: there is no dockerd") };
    let docker = tactus_environment::find("docker").unwrap();
    let spec = super::spec("docker", &[("host", &daemon.host())]);
    let mut talk = super::Conversation::begin(docker, &spec).unwrap_or_else(|error| panic!("{error}"));
    talk.greet();
    let id = talk.id().to_owned();
    assert_eq!(daemon.has(&id).len(), 2, "{:?}", daemon.has(&id));
    talk.end();
    assert_eq!(daemon.has(&id), [] as [String; 0]);
}
