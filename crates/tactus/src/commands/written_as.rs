//! The format in which a report is written.

use std::path::Path;

/// Endings of file names, and the format of each.
const ENDINGS: [(&str, &str); 8] = [
    ("html", "html"),
    ("htm", "html"),
    ("json", "json"),
    ("md", "markdown"),
    ("xml", "junit"),
    ("svg", "svg"),
    ("png", "png"),
    ("txt", "text"),
];

/// `--json`, else `--format`, else the format that the name of the file (`--out page.html`) ends with.
pub fn written_as<'a>(json: bool, format: Option<&'a str>, out: Option<&Path>) -> Option<&'a str> {
    let ending = || out?.extension()?.to_str();
    match format {
        _ if json => Some("json"),
        Some(format) => Some(format),
        None => {
            let ending = ending()?;
            ENDINGS.iter().find(|(one, _)| one.eq_ignore_ascii_case(ending)).map(|(_, format)| *format)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_chooses_the_format_unless_one_is_asked_for() {
        let file = |name: &'static str| Some(Path::new(name));
        assert_eq!(written_as(false, None, file("a/page.html")), Some("html"));
        assert_eq!(written_as(false, None, file("PAGE.HTML")), Some("html"));
        assert_eq!(written_as(false, None, file("junit.xml")), Some("junit"));
        assert_eq!(written_as(false, Some("github"), file("junit.xml")), Some("github"));
        assert_eq!(written_as(true, None, file("page.html")), Some("json"));
        for without in [None, file("-"), file("page"), file(".html"), file("a.html/page")] {
            assert_eq!(written_as(false, None, without), None);
        }
    }
}
