//! The pages at each address, and addresses without one.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::{Running, asked, events, get, put, recorded, serve};
use tactus_bundle::Trust;

#[test]
fn the_list_has_every_bundle_the_newest_first_with_what_it_answers() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "environments", "first");
    put(dir.path(), "prove", "second & last");
    fs::create_dir(dir.path().join("no bundle")).unwrap();
    fs::write(dir.path().join("file"), "nothing").unwrap();
    let at = serve(dir.path(), None);
    // Answers are read one after the other, and told when they are.
    let told = events(at, "/events?page=1").map(|(_, part)| part);
    let part = told.into_iter().find(|part| !part.contains("loading ...")).unwrap();
    let place = |text: &str| part.find(text).unwrap_or_else(|| panic!("no {text}: {part}"));
    assert!(place("href=\"/bundle/second%20%26%20last\"") < place("href=\"/bundle/first\""));
    place("second &amp; last");
    place("NOT DECIDED");
    place("NO EFFECT SHOWN");
    place("504 KB");
    assert!(part.contains("2 bundles") && !part.contains("no bundle"), "{part}");
    let page = get(at, "/", "");
    assert_eq!(page.code, 200);
    assert!(
        page.body.contains("NO EFFECT SHOWN")
            && page.head.contains("Content-Security-Policy: default-src 'none'")
    );
}

#[test]
fn an_empty_directory_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let at = serve(dir.path(), None);
    let page = get(at, "/", "");
    assert!(page.body.contains("tactus run --quick --out "), "{}", page.body);
    // It appears as soon as it is there.
    let mut told = events(at, "/events").map(|(_, part)| part);
    assert!(told.next().unwrap().contains("There is no bundle"));
    put(dir.path(), "prove", "prove");
    assert!(told.next().unwrap().contains("/bundle/prove"));
}

#[test]
fn a_report_is_the_page_that_tactus_report_writes() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "environments", "own");
    let at = serve(dir.path(), None);
    let contents = tactus_bundle::read(&recorded("environments"), Trust::Whole).unwrap();
    let page = tactus_report::render::html::render(&contents).unwrap();
    for _ in 0..2 {
        let got = get(at, "/bundle/own", "");
        assert_eq!((got.code, got.body == page), (200, true));
        assert!(got.head.contains("frame-ancestors 'none'") && got.head.contains("sandbox allow-scripts"));
    }
    // It is drawn once, and again when its bundle is another one.
    fs::remove_dir_all(dir.path().join("own")).unwrap();
    put(dir.path(), "prove", "own");
    while get(at, "/bundle/own", "").body == page {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn names_are_those_of_the_list_and_no_paths() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("served");
    fs::create_dir(&dir).unwrap();
    put(above.path(), "prove", "outside");
    put(&dir, "prove", "inside");
    symlink("../outside", dir.join("link")).unwrap();
    let at = serve(&dir, None);
    assert_eq!(get(at, "/bundle/inside", "").code, 200);
    assert_eq!(get(at, "/bundle/%69nside", "").code, 200, "another way to write it");
    for path in [
        "/bundle/outside",
        "/bundle/../outside",
        "/bundle/..%2Foutside",
        "/bundle/%2e%2e/outside",
        "/bundle/inside%2F..%2F..%2Foutside",
        "/bundle/link",
        "/bundle/",
        "/bundle/.",
        "/bundle/%",
        "/bundle/inside%00",
        "/bundle/inside/manifest.json",
        "/inside",
        "//bundle/inside",
        "/../../../../etc/passwd",
        "http://127.0.0.1/bundle/inside",
    ] {
        for suffix in ["", "/live", "/events"] {
            let got = get(at, &format!("{path}{suffix}"), "");
            assert_eq!(got.code, 404, "{path}{suffix}");
            assert!(!got.body.contains("root:"), "{path}");
        }
    }
    assert!(!get(at, "/", "").body.contains("/bundle/link"), "a link is not followed");
}

#[test]
fn nothing_can_be_changed_and_a_page_of_a_strangers_reads_nothing() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "prove", "bundle-7");
    let before = files(dir.path());
    let at = serve(dir.path(), None);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "MOVE"] {
        let got = asked(
            at,
            &format!("{method} /bundle/bundle-7 HTTP/1.1\r\nHost: {at}\r\nContent-Length: 0\r\n\r\n"),
        );
        assert_eq!(got.code, 405, "{method}");
    }
    let head = asked(at, &format!("HEAD /bundle/bundle-7 HTTP/1.1\r\nHost: {at}\r\n\r\n"));
    assert_eq!((head.code, head.body.as_str()), (200, ""));
    for host in ["evil.example", "evil.example:80", "10.0.0.1", "127.0.0.1.evil.example"] {
        for path in ["/", "/bundle/bundle-7", "/events"] {
            let got = asked(at, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(
                (got.code, got.body.contains("bundle-7")),
                (403, false),
                "{host} {path}: {}",
                got.body
            );
        }
    }
    assert_eq!(get(at, "/bundle/bundle-7", "").code, 200);
    assert_eq!(get(at, "/", "").code, 200);
    assert_eq!(files(dir.path()), before);
}

/// Every file beneath, with what is in it.
fn files(dir: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push((entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn a_bundle_that_was_altered_says_so_and_shows_what_is_left() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "prove", "altered");
    put(dir.path(), "prove", "cut");
    put(dir.path(), "prove", "huge");
    fs::write(dir.path().join("altered/plan.toml"), "name = \"<script>alert(1)</script>\"").unwrap();
    fs::write(dir.path().join("cut/manifest.json"), "{\"format\": {").unwrap();
    fs::File::create(dir.path().join("huge/manifest.json")).unwrap().set_len(1 << 40).unwrap();
    let at = serve(dir.path(), None);
    let got = get(at, "/bundle/altered", "");
    assert_eq!(got.code, 500);
    assert!(got.body.contains("is not as the run wrote it") && got.body.contains("bundle/altered?damaged"));
    let left = get(at, "/bundle/altered?damaged", "");
    assert_eq!(left.code, 200);
    assert!(left.body.contains("This bundle is not whole.") && !left.body.contains("<script>alert"));
    for name in ["cut", "huge"] {
        assert_eq!(get(at, &format!("/bundle/{name}"), "").code, 500);
    }
    let told = events(at, "/events").map(|(_, part)| part);
    let part = told.into_iter().find(|part| !part.contains("loading ...")).unwrap();
    assert!(part.contains("NOT READ") && part.matches("not read</span>").count() == 2, "{part}");
}

#[test]
fn a_name_of_any_bytes_is_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let dir = tempfile::tempdir().unwrap();
    let names: [&[u8]; 4] =
        [b"<script>alert(1)<script>", b"a\nb\x1b[31m", b"\xff\xfe", "\u{202e}x\"' onload=1".as_bytes()];
    for name in names {
        let called = dir.path().join(OsStr::from_bytes(name));
        fs::create_dir(&called).unwrap();
        fs::copy(recorded("prove").join("manifest.json"), called.join("manifest.json")).unwrap();
    }
    let at = serve(dir.path(), None);
    let page = get(at, "/", "").body;
    assert!(
        !page.contains("<script>alert") && !page.contains('\u{1b}') && !page.contains('\u{202e}'),
        "{page}"
    );
    assert!(page.contains("/bundle/%FF%FE") && page.contains("4 bundles"), "{page}");
    // It is found, and has no files.
    assert_eq!(get(at, "/bundle/%FF%FE", "").code, 500);
}

#[test]
fn a_run_in_progress_is_told_until_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Running::begin(&dir.path().join("night"), "host idle");
    let at = serve(dir.path(), None);
    let list = get(at, "/", "").body;
    assert!(list.contains("/bundle/night/live") && list.contains("measured right now"), "{list}");
    let page = get(at, "/bundle/night/live", "");
    assert!(page.body.contains("data-events=\"/bundle/night/events\""), "{}", page.body);
    assert!(page.body.contains("0 of 2 measurements done"));
    let mut told = events(at, "/bundle/night/events");
    let (name, first) = told.next().unwrap();
    assert!(name == "state" && first.contains("1 s of 1 h") && first.contains("CPU 1, thread 1"), "{first}");
    run.tick(7_777_000);
    let (_, second) = told.next().unwrap();
    assert!(second.contains(">7777<") && second.contains("2 s of 1 h"), "{second}");
    // Its report can be read during the run, as it is now.
    let report = get(at, "/bundle/night", "");
    assert!(report.code == 200 && report.body.contains("This bundle is not whole."), "{}", report.head);
    run.end();
    let (name, last) = told.find(|(name, _)| name == "ended").unwrap();
    assert!(
        name == "ended" && last.contains("Open its report") && last.contains("/bundle/night\""),
        "{last}"
    );
    assert!(told.next().is_none(), "there is no more to tell");
    // A later client gets a page that does not follow.
    assert!(!get(at, "/bundle/night/live", "").body.contains("data-events"));
    assert!(!get(at, "/bundle/night", "").body.contains("This bundle is not whole."));
}

#[test]
fn a_bundle_that_goes_away_while_it_is_followed_ends_its_events() {
    let dir = tempfile::tempdir().unwrap();
    let run = Running::begin(&dir.path().join("night"), "host idle");
    let at = serve(dir.path(), None);
    let mut told = events(at, "/bundle/night/events");
    assert!(told.next().is_some());
    drop(run);
    fs::remove_dir_all(dir.path().join("night")).unwrap();
    assert!(told.all(|(name, _)| name == "state"));
    assert_eq!(get(at, "/bundle/night/live", "").code, 404);
}
