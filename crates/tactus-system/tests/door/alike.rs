//! Properties that hold on every system.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tactus_model::CpuSet;
use tactus_model::threads::Policy;
use tactus_system::{Invocation, Real, System};

use super::remote_probe::{RemoteProbe, lives};

/// Does the same on this machine and through a probe.
fn on_both(what: fn(&dyn System, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    what(&Real, dir.path());
    let dir = tempfile::tempdir().unwrap();
    let remote = RemoteProbe::begin();
    what(&remote.system, dir.path());
    remote.end();
}

#[test]
fn files_are_written_read_listed_renamed_and_removed() {
    on_both(|system, dir| {
        let file = dir.join("a file");
        let bytes: Vec<u8> = (0..=255).cycle().take(700_001).collect();
        system.write(&file, &bytes).unwrap();
        assert!(system.read(&file).unwrap() == bytes, "all of a large file");
        system.write(&file, b"short").unwrap();
        assert_eq!(system.text(file.to_str().unwrap()).unwrap(), "short");
        system.append(&dir.join("journal"), b"1\n").unwrap();
        system.append(&dir.join("journal"), b"2\n").unwrap();
        assert_eq!(system.read(&dir.join("journal")).unwrap(), b"1\n2\n");
        system.make_dir(&dir.join("d/e")).unwrap();
        system.rename(&file, &dir.join("d/e/f")).unwrap();
        assert!(!system.exists(&file) && system.exists(&dir.join("d/e/f")));
        assert_eq!(system.list(dir).unwrap(), [dir.join("d"), dir.join("journal")]);
        assert!(system.opens(&dir.join("journal")) && !system.opens(&dir.join("none")));
        assert!(system.remove_empty(&dir.join("d")).is_err());
        system.remove(&dir.join("d")).unwrap();
        system.remove(&dir.join("d")).unwrap();
        assert_eq!(system.list(dir).unwrap(), [dir.join("journal")]);
        system.unmount(&dir.join("journal")).unwrap();
    });
}

#[test]
fn what_proc_says_is_read_whole() {
    on_both(|system, _| {
        assert!(system.text("/proc/self/status").unwrap().contains("VmPeak"));
        assert_eq!(system.is_root(), Real.is_root());
        assert_eq!(system.variable("PATH"), Real.variable("PATH"));
        assert_eq!(system.variable("NO_SUCH_VARIABLE"), None);
        assert_eq!(system.arch(), std::env::consts::ARCH);
    });
}

#[test]
fn what_goes_wrong_has_the_systems_own_reason() {
    on_both(|system, dir| {
        let none = dir.join("none");
        assert_eq!(system.read(&none).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(system.list(&none).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(system.rename(&none, dir).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(system.write(&none.join("x"), b"").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(system.read(dir).is_err(), "a directory");
        let error = system.run(&Invocation::new(["no-such-program"])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("no-such-program: "), "{error}");
        assert!(system.place(0, &CpuSet::one(0)).is_err() && system.schedule(0, Policy::Other, 0).is_err());
    });
}

#[test]
fn an_installed_file_has_its_mode_and_leaves_nothing_beside_it() {
    on_both(|system, dir| {
        let path = dir.join("a/b/program");
        system.install(&path, b"#!/bin/sh\n", 0o755).unwrap();
        system.install(&path, b"#!/bin/sh\nexit 7\n", 0o755).unwrap();
        assert_eq!(system.list(path.parent().unwrap()).unwrap(), std::slice::from_ref(&path));
        let finished = system.run(&Invocation::new([path.to_str().unwrap()])).unwrap();
        assert_eq!(finished.code, Some(7));
        let probe = tactus_system::probe::own().unwrap();
        system.install(&dir.join("probe"), probe, 0o700).unwrap();
        assert!(std::fs::read(dir.join("probe")).unwrap() == probe, "the probe itself");
    });
}

#[test]
fn commands_run_to_their_end_with_what_they_said() {
    on_both(|system, _| {
        let script = "echo out; echo err >&2; exit 3";
        let finished = system.run(&Invocation::new(["sh", "-c", script])).unwrap();
        assert_eq!(
            (finished.code, finished.text().as_str(), finished.words().as_str()),
            (Some(3), "out\n", "err")
        );
        let flood = Invocation::new(["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"]);
        assert_eq!(system.run(&flood).unwrap().stdout.len(), 3_000_000);
        let sleep = Invocation::new(["sleep", "60"]).within(Duration::from_millis(50));
        let error = system.run(&sleep).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("sleep 60"), "{error}");
    });
}

#[test]
fn a_child_is_spoken_with_until_it_is_dropped() {
    on_both(|system, _| {
        let script = "echo $MARK; cat; echo over >&2; exec sleep 60";
        let words = Invocation::new(["sh", "-c", script]).with_env(("MARK", "x1"));
        let mut child = system.spawn(&words).unwrap();
        let pid = child.pid();
        let mut stdout = child.take_stdout().unwrap();
        let mut stdin = child.take_stdin().unwrap();
        assert!(child.take_stdin().is_none() && child.take_stdout().is_none());
        let mut out = [0; 3];
        stdout.read_exact(&mut out).unwrap();
        assert_eq!(&out, b"x1\n");
        let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
        let sent = bytes.clone();
        let writer = std::thread::spawn(move || stdin.write_all(&sent));
        let mut back = vec![0; bytes.len()];
        stdout.read_exact(&mut back).unwrap();
        assert!(back == bytes, "all comes back");
        // Its stdin ends with the writer.
        writer.join().unwrap().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while child.stderr() != "over\n" {
            assert!(Instant::now() < until, "{:?}", child.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(lives(pid) && child.try_wait().unwrap().is_none());
        drop(child);
        assert!(!lives(pid));
    });
}

#[test]
fn a_child_whose_reader_has_gone_is_told_so() {
    on_both(|system, _| {
        let mut child = system.spawn(&Invocation::new(["yes"])).unwrap();
        let mut stdout = child.take_stdout().unwrap();
        stdout.read_exact(&mut [0; 100_000]).unwrap();
        drop(stdout);
        let until = Instant::now() + Duration::from_secs(20);
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it writes into nowhere");
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}
