//! The contents of every format.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tactus_model::bundle::Contents;
use tactus_report::part::{Part, Reader};
use tactus_report::render::text::{Style, render};
use tactus_report::render::{FORMATS, html, json, markdown, svg};
use tactus_report::section::SECTIONS;

use crate::common::{self, day, empty, hostile, interrupted, study, this_machine};

fn all() -> [(&'static str, Contents); 6] {
    [
        ("machine", this_machine()),
        ("study", study()),
        ("interrupted", interrupted()),
        ("hostile", hostile()),
        ("empty", empty()),
        ("overheads", common::overheads()),
    ]
}

fn plain(width: usize) -> Style {
    Style { colour: false, width }
}

#[test]
fn the_text_of_a_machine_fits_100_columns() {
    insta::assert_snapshot!(render(&this_machine(), plain(100)));
}

#[test]
fn the_text_of_a_study_at_80_columns() {
    insta::assert_snapshot!(render(&study(), plain(80)));
}

#[test]
fn the_text_of_a_machine_in_colour_and_wide() {
    insta::assert_snapshot!(render(&this_machine(), Style { colour: true, width: 140 }));
}

#[test]
fn the_text_of_what_was_interrupted() {
    insta::assert_snapshot!(render(&interrupted(), plain(100)));
}

#[test]
fn the_text_of_an_empty_bundle() {
    insta::assert_snapshot!(render(&empty(), plain(100)));
}

#[test]
fn the_markdown_of_a_study() {
    insta::assert_snapshot!(markdown::render(&study()));
}

#[test]
fn the_markdown_of_hostile_names() {
    insta::assert_snapshot!(markdown::render(&hostile()));
}

#[test]
fn the_json_of_a_machine() {
    insta::assert_snapshot!(json::render(&this_machine()).unwrap());
}

/// The page without its style, script, drawings and data: its words and their order.
#[test]
fn the_page_of_a_machine() {
    let page = html::render(&this_machine()).unwrap();
    let (mut rest, mut words) = (page.as_str(), String::new());
    while let Some((start, end)) = next_block(rest) {
        words.push_str(&rest[..start]);
        rest = &rest[end..];
    }
    words.push_str(rest);
    // The policy changes with every line of style and script.
    let hashes: Vec<&str> =
        words.split("'sha256-").skip(1).filter_map(|rest| rest.split('\'').next()).collect();
    let words = hashes.iter().fold(words.clone(), |words, hash| words.replace(hash, "..."));
    insta::assert_snapshot!(words);
}

fn next_block(page: &str) -> Option<(usize, usize)> {
    ["style", "script", "svg"]
        .into_iter()
        .filter_map(|tag| {
            let start = page.find(&format!("<{tag}"))?;
            let end = page[start..].find(&format!("</{tag}>"))? + start + tag.len() + 3;
            Some((start, end))
        })
        .min()
}

#[test]
fn no_text_is_wider_than_its_terminal() {
    for (name, contents) in all() {
        for width in [100, 140] {
            let text = render(&contents, plain(width));
            for line in text.lines() {
                assert!(tactus_report::units::columns(line) <= width, "{name} at {width}: {line}");
            }
        }
    }
    for line in render(&study(), plain(80)).lines() {
        assert!(tactus_report::units::columns(line) <= 80, "{line}");
    }
}

#[test]
fn no_terminal_is_driven_by_a_name() {
    for (name, contents) in all() {
        let text = render(&contents, plain(100)) + &markdown::render(&contents);
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{name}");
    }
}

#[test]
fn emulation_is_labelled_in_every_format() {
    for format in FORMATS.iter().filter(|format| format.name != "png") {
        let text = String::from_utf8((format.render)(&this_machine()).unwrap()).unwrap();
        assert!(text.contains("emulated"), "{}", format.name);
    }
}

#[test]
fn a_long_name_does_not_cut_the_evidence_off_a_legend() {
    let drawing = svg::render(&hostile());
    let cut = drawing.lines().filter(|line| line.contains("very long") && line.contains('…'));
    let legends: Vec<&str> = cut.filter(|line| !line.contains("<title>")).collect();
    assert!(!legends.is_empty() && legends.iter().all(|line| line.contains("bare metal")), "{legends:?}");
}

#[test]
fn skipped_rows_keep_their_row_and_reason() {
    for format in ["text", "markdown", "html", "json"] {
        let format = FORMATS.iter().find(|known| known.name == format).unwrap();
        let text = String::from_utf8((format.render)(&this_machine()).unwrap()).unwrap();
        assert!(text.contains("oci, idle") && text.contains("neither crun nor runc"), "{}", format.name);
    }
}

#[test]
fn the_page_needs_no_network() {
    for (name, contents) in all() {
        let page = html::render(&contents).unwrap();
        let namespace = "http://www.w3.org/2000/svg";
        // Links within the page lead nowhere outside.
        let rest = page.replace(namespace, "").replace("href=\"#", "");
        for outside in
            ["http:", "https:", "src=\"", "href=\"", "url(", "@import", "//cdn", "<link", "<img", "<iframe"]
        {
            assert!(!rest.contains(outside), "{name}: {outside}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn the_page_is_well_formed_and_a_hostile_name_is_only_text() {
    for (name, contents) in all() {
        let page = html::render(&contents).unwrap();
        balanced(name, &page);
        for row in &contents.rows {
            let shown = tactus_report::units::clean(&row.result.name);
            let escaped = escape(&shown);
            assert!(page.contains(&escaped), "{name}: {escaped}");
        }
    }
    let page = html::render(&hostile()).unwrap();
    for markup in ["<script>alert", "<img", "<svg onload", "<b>bold", "</td><script>"] {
        assert!(!page.contains(markup), "{markup} is in the page");
    }
    assert!(page.contains("{{ 7 * 7 }}"), "a template in a name is not evaluated");
}

/// As the template engine escapes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#x27;")
}

/// Every element is closed in its order, and every script's data is JSON.
fn balanced(name: &str, page: &str) {
    let void = ["meta", "br", "input", "!doctype", "rect", "line", "circle", "polyline", "polygon"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').unwrap_or_else(|| panic!("{name}: `<` without `>`"));
        let (tag, closed) = (&rest[..end], rest[..end].ends_with('/'));
        let word: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '!')
            .collect();
        let word = word.to_lowercase();
        rest = &rest[end + 1..];
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(word.as_str()), "{name}: </{word}>");
        } else if word == "script" || word == "style" {
            let end = rest.find(&format!("</{word}>")).unwrap_or_else(|| panic!("{name}: {word} is open"));
            if tag.contains("application/json") {
                serde_json::from_str::<serde_json::Value>(&rest[..end]).unwrap();
            }
            rest = &rest[end + word.len() + 3..];
        } else if !closed && !void.contains(&word.as_str()) {
            open.push(word);
        }
    }
    assert!(open.is_empty(), "{name}: {open:?} are never closed");
}

#[test]
fn drawings_are_xml_without_sentinel_colours() {
    for (name, contents) in all() {
        let drawing = svg::render(&contents);
        assert!(
            !drawing.contains("\"#0101") && !drawing.contains("\"#0202") && !drawing.contains("var("),
            "{name}"
        );
        balanced(name, &drawing);
        let tree = usvg::Tree::from_str(&drawing, &usvg::Options::default());
        assert!(tree.is_ok(), "{name}: {tree:?}");
    }
}

#[test]
fn an_image_is_a_png_where_there_is_a_font() {
    let format = FORMATS.iter().find(|format| format.name == "png").unwrap();
    match (format.render)(&study()) {
        Ok(image) => assert!(image.starts_with(b"\x89PNG\r\n\x1a\n") && image.len() > 20_000),
        Err(error) => assert!(error.hint().contains("font"), "{error}"),
    }
}

#[test]
fn a_study_shows_published_beside_measured() {
    let page = html::render(&study()).unwrap();
    assert!(page.contains("published maximum 8 us (section 12.2 and figure 3)"), "the line in the figure");
    assert!(
        page.contains("Figure 3. Result on VM") && page.contains("does not change the latency on another")
    );
    assert!(markdown::render(&study()).contains("| VM without load | maximum | 8 us |"));
}

#[test]
fn a_day_becomes_a_page_of_reasonable_size_in_reasonable_time() {
    let contents = day();
    let begun = Instant::now();
    let page = html::render(&contents).unwrap();
    // Seconds in an optimized build; the limit is for an unoptimized one on a busy machine.
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    assert!(page.contains("777 us"), "the largest value of the day is in the page");
}

#[test]
fn no_drawing_is_left_out_of_those_that_stand_alone() {
    for (name, contents) in all() {
        for section in SECTIONS.iter().filter(|section| section.applies(&contents)) {
            let parts = section.parts(&contents, Reader::Page);
            let drawn = parts.iter().any(|part| matches!(part, Part::Figure(_)));
            assert!(!drawn || section.draws(), "{name}: {} has drawings and does not say so", section.name());
        }
    }
}

#[test]
fn what_an_environment_shares_with_the_machine_stands_on_the_page_once() {
    let mut contents = this_machine();
    let mut own = common::facts("6.1.0-rt", "quiet");
    contents.facts = BTreeMap::from([("host".into(), own.clone())]);
    own.keep("sched:affinity", "1");
    let all = own.0.len();
    contents.facts.insert("podman".into(), own);
    let page = html::render(&contents).unwrap();
    let told = |name: &str| page.matches(&format!("<tr><th>{name}</th>")).count();
    assert!(page.contains(&format!("podman: 1 of {all} readings; the others are as in host")));
    assert!(page.contains(&format!("host: all {} readings", all - 1)));
    assert_eq!([told("sched:affinity"), told("/proc/sys/kernel/sched_rt_runtime_us")], [1, 1]);
}
