//! The page as readers open it: in headless Chromium, wide and narrow, light and dark, by keyboard and on paper, with and
//! without scripts.
#![expect(
    clippy::disallowed_methods,
    reason = "pages are written to be opened, and another program opens them"
)]

mod look;

use serde_json::Value;
use tactus_report::render::html;

use self::look::looks;
use crate::common::{hostile, overheads, study, this_machine};
use crate::compare;

/// The ways in which a page is opened.
const WAYS: [&str; 6] = ["wide", "usual", "dark", "narrow", "open", "folded"];

/// The faults of these pages; `None` without a browser.
fn looked(pages: &[(&str, String)]) -> Option<Value> {
    let mut look = looks(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/report/browser/look.py"))?;
    let directory = tempfile::tempdir().unwrap();
    for (name, page) in pages {
        let path = directory.path().join(format!("{name}.html"));
        std::fs::write(&path, page).unwrap();
        look.arg(path);
    }
    let said = look.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Some(serde_json::from_slice(&said.stdout).unwrap())
}

/// Nothing in these lists.
fn nothing(said: &Value, place: &str, lists: &[&str]) {
    for list in lists {
        assert_eq!(said[*list], Value::Array(Vec::new()), "{place}: {list}");
    }
}

#[test]
fn pages_are_whole_in_every_width_and_light_on_paper_and_for_those_who_do_not_see_them() {
    let pages =
        [("machine", this_machine()), ("study", study()), ("overheads", overheads()), ("hostile", hostile())];
    let mut pages: Vec<(&str, String)> =
        pages.into_iter().map(|(name, contents)| (name, html::render(&contents).unwrap())).collect();
    pages.push(("comparison", compare::page()));
    for (name, contents) in [("separation", crate::separation::paged()), ("tail", crate::tail::with_a_tail())]
    {
        pages.push((name, html::render(&contents).unwrap()));
    }
    let wide = |(_, page): &(&str, String)| page.contains("class=\"scroll box stack wide\"");
    assert!(pages.iter().any(wide), "a table of ten columns, which a narrow page has no room for");
    let Some(said) = looked(&pages) else { return };
    for (name, _) in &pages {
        let page = &said[*name];
        for way in WAYS {
            nothing(&page[way], &format!("{name}, {way}"), &["errors", "requests", "cut", "axe"]);
        }
        nothing(&page["still"], &format!("{name}, without scripts"), &["errors", "requests"]);
        let has_figures = ["machine", "study", "comparison", "tail"].contains(name);
        let (still, figures) = (&page["still"], page["figures"].as_array().unwrap());
        let widths: Vec<f64> =
            still["widths"].as_array().unwrap().iter().map(|width| width.as_f64().unwrap()).collect();
        assert!(widths.iter().all(|width| *width > 100.0), "{name}, without scripts: {still}");
        assert!(!(has_figures && widths.is_empty()), "{name}, without scripts: no figure");
        assert_eq!(still["live"], 0, "{name}, without scripts");
        assert!(!(has_figures && figures.is_empty()), "{name}: no figure answers to keys");
        for figure in figures {
            assert_ne!(figure["all"], figure["zoomed"], "{name}: + does not zoom: {figure:#}");
            assert_eq!(figure["all"], figure["reset"], "{name}: 0 does not show all: {figure:#}");
            assert_eq!(figure["off"], "false", "{name}: a line is not switched off: {figure:#}");
        }
        let length = &page["folded"]["length"];
        // A study that goes through its document page by page shows those pages.
        let (words, screens) = (length["words"].as_u64().unwrap(), length["screens"].as_f64().unwrap());
        let is_short = words <= 2_500 && screens <= 6.0;
        assert!(is_short || ["separation", "hostile"].contains(name), "{name}: too long: {length}");
        nothing(&page["paper"], &format!("{name}, on paper"), &["errors", "requests", "cut"]);
        let sheets = page["paper"]["pages"].as_u64().unwrap();
        assert!((1..30).contains(&sheets), "{name}: {sheets} pages of paper");
        assert_eq!(page["hostile"], "undefined", "{name}: a name was run as a script");
    }
}

#[test]
fn a_figure_is_read_zoomed_and_switched_by_keys_and_by_pointer() {
    let Some(said) = looked(&[("machine", html::render(&this_machine()).unwrap())]) else { return };
    let keys = &said["machine"]["keyboard"];
    assert_eq!(keys["reached"], true, "no Tab leads to the figure: {keys}");
    assert_ne!(keys["before"]["values"], keys["moved"]["values"], "arrows read no value");
    assert_ne!(keys["moved"]["range"], keys["zoomed"]["range"], "+ does not zoom");
    assert_eq!(keys["reset"]["range"], keys["before"]["range"], "0 does not show all");
    assert_eq!((&keys["off"]["pressed"][0], &keys["on"]["pressed"][0]), (&"false".into(), &"true".into()));
    assert_ne!(keys["hovered"]["at"], keys["on"]["at"], "a pointer reads no value");
}

#[test]
fn the_level_of_a_tail_and_its_fit_are_read_zoomed_and_switched_as_well() {
    let page = html::render(&crate::tail::with_a_tail()).unwrap();
    assert!(page.contains("<svg"), "who has no scripts has the still ones");
    let Some(said) = looked(&[("tail", page)]) else { return };
    let figures = said["tail"]["figures"].as_array().unwrap();
    let titled = |what: &str| {
        let own = figures.iter().find(|one| one["title"].as_str().is_some_and(|title| title.contains(what)));
        own.unwrap_or_else(|| panic!("no figure of {what}: {figures:#?}"))
    };
    for (what, at, names) in [
        (
            "exceeded once in this time",
            "time: 1 d",
            vec!["exceeded once in this time", "at most (95 %)", "at least (95 %)", "measured"],
        ),
        (
            "the tail against the fitted distribution",
            "by the distribution: ",
            vec!["exceedances", "where the distribution fits"],
        ),
    ] {
        let figure = titled(what);
        assert!(figure["at"].as_str().unwrap().starts_with(at), "{figure:#}");
        let shown = figure["values"].as_array().unwrap();
        assert_eq!(shown.iter().map(|one| one[0].as_str().unwrap()).collect::<Vec<_>>(), names);
        // At the horizon there is a level, and nothing measured.
        let latencies = shown.iter().filter(|one| one[1].as_str().unwrap().ends_with(" µs")).count();
        assert_eq!(latencies, if names.len() == 4 { 3 } else { 2 }, "{figure:#}");
        assert_ne!(figure["all"], figure["zoomed"], "+ does not zoom");
        assert_eq!(figure["all"], figure["reset"], "0 does not show all");
        assert_eq!(figure["off"], "false");
    }
    for way in WAYS {
        nothing(&said["tail"][way], way, &["errors", "requests", "cut", "axe"]);
    }
}

/// Every attempt sets `window.hostile`; the browser tells whether one did.
#[test]
fn no_name_of_a_bundle_is_run_as_a_script() {
    let names = [
        "<script>window.hostile=1</script>",
        "</script><script>window.hostile=2</script>",
        "\"><img src=x onerror=\"window.hostile=3\">",
        "<!--<script>window.hostile=4//",
        "{{ 7 * 7 }}\u{2028}window.hostile=5",
    ];
    let mut contents = this_machine();
    for (row, name) in contents.rows.iter_mut().zip(names) {
        row.result.name = name.into();
    }
    contents.plan.title = Some(names[1].into());
    contents.manifest.plan = names[2].into();
    let page = html::render(&contents).unwrap();
    let data: Vec<&str> = page.split("class=\"plot-data\">").skip(1).collect();
    assert!(data.len() > 3, "names go into the data of figures");
    for data in data {
        let json = data.split("</script>").next().unwrap();
        assert!(!json.contains('<'), "{json:.200}");
        serde_json::from_str::<Value>(json).unwrap();
    }
    let Some(said) = looked(&[("names", page)]) else { return };
    assert_eq!(said["names"]["hostile"], "undefined");
    for way in WAYS {
        nothing(&said["names"][way], way, &["errors", "requests"]);
    }
}

#[test]
fn a_page_runs_and_shows_nothing_that_its_policy_does_not_name() {
    let page = html::render(&this_machine()).unwrap();
    let policy =
        page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(policy.matches("'sha256-").count(), 2, "{policy}");
    assert!(
        !page.contains(" style=\"") && !page.contains(" onclick="),
        "an inline style is refused by the policy"
    );
}
