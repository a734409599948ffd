//! The template filled in.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind, HtmlEscape, Value, escape_formatter};
use sha2::{Digest, Sha256};
use tactus_model::bundle::Contents;
use tactus_model::text::no_orders;

use super::page::Page;
use crate::part::Chapters;
use crate::render::RenderError;
use crate::units::clean;

/// The page of a bundle.
///
/// # Errors
/// When the template cannot be rendered, which a test excludes.
pub fn render(contents: &Contents) -> Result<String, RenderError> {
    filled(&Page::of(contents))
}

/// A page of chapters.
///
/// # Errors
/// As [`render`].
pub fn chapters(of: Chapters) -> Result<String, RenderError> {
    filled(&Page::of_chapters(of))
}

/// How a page looks.
pub const STYLE: &str = include_str!("style.css");

/// The environment of templates whose values may contain anyone's words: it escapes all of them.
///
/// # Errors
/// None that a test does not exclude.
pub fn escaping() -> Result<Environment<'static>, RenderError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => Ok(out.write_str(&on_one_line(text))?),
        _ => escape_formatter(out, state, value),
    });
    environment.add_filter("prose", |text: &str| Value::from_safe_string(prose(text)));
    environment.add_filter("compact_json", compact_json);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    Ok(environment)
}

/// JSON without spaces, in which nothing ends a script element.
fn compact_json(value: &Value) -> Result<Value, minijinja::Error> {
    let text = serde_json::to_string(value)
        .map_err(|error| minijinja::Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    let signs = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\'', "\\u0027")];
    let text = signs.into_iter().fold(text, |text, (sign, escape)| text.replace(sign, escape));
    Ok(Value::from_safe_string(text))
}

fn filled(page: &Page) -> Result<String, RenderError> {
    let mut environment = escaping()?;
    environment.add_template("report.html", include_str!("report.html"))?;
    environment.add_template("blocks.html", include_str!("blocks.html"))?;
    environment.add_template("grid.html", include_str!("grid.html"))?;
    environment.add_template("lines.html", include_str!("lines.html"))?;
    environment.add_template("table.html", include_str!("table.html"))?;
    environment.add_template("figure.html", include_str!("figure.html"))?;
    let (style, script) = (STYLE, script(page.is_live()));
    let page = environment.get_template("report.html")?.render(minijinja::context! {
        page => Serde(page),
        // Nothing but these two is run or styled by, whatever else a page may come to hold.
        style_hash => hash(style),
        script_hash => hash(&script),
        style,
        script,
    })?;
    // A page may be printed in a job. No line of its style or script begins so: a test compares their checksums.
    Ok(no_orders(&page))
}

/// uPlot (MIT) as it was published, but for its first line, which is an address.
const UPLOT: &str = include_str!("vendor/uplot-1.6.32.js");
const UPLOT_LICENSE: &str = include_str!("vendor/uplot-1.6.32.LICENSE");

/// The script of a page; the part for figures is included only if there are any.
fn script(live: bool) -> String {
    let own = packed(include_str!("script.js"));
    if !live {
        return own;
    }
    let library = UPLOT.split_once('\n').map_or(UPLOT, |(_, rest)| rest);
    let plot = packed(include_str!("plot.js"));
    format!("/* uPlot 1.6.32\n{UPLOT_LICENSE}*/\n{library}\n{own}\n{plot}")
}

/// A script of ours without indentation and lines of comment: no string of it goes over several lines.
fn packed(script: &str) -> String {
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A script or a style as a content security policy names it to allow it.
#[must_use]
pub fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

/// Microseconds as a page can write them: `12.5 us` becomes `12.5 µs`. What is to be typed (`--max 100us`) stays.
pub(crate) fn with_micro(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\u{a0}', ' ']) {
        let (before, behind) = rest.split_at(at);
        let space = behind.chars().next().map_or(1, char::len_utf8);
        shown.push_str(before);
        shown.push_str(&behind[..space]);
        rest = &behind[space..];
        let unit = rest
            .strip_prefix("us")
            .filter(|left| !left.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
        if let Some(left) =
            unit.filter(|_| before.ends_with(|c: char| c.is_ascii_digit()) || before.ends_with("in"))
        {
            shown.push_str("µs");
            rest = left;
        }
    }
    shown + rest
}

/// Sentences, in which what is typed stands between backticks.
fn prose(text: &str) -> String {
    let pieces: Vec<&str> = text.split('`').collect();
    // A last one without its fellow is a backtick.
    if pieces.len().is_multiple_of(2) {
        return on_one_line(text);
    }
    let typed = |piece: &str| format!("<code>{}</code>", HtmlEscape(&clean(piece)));
    let said = pieces.into_iter().zip([false, true].into_iter().cycle());
    said.map(|(piece, is_typed)| if is_typed { typed(piece) } else { on_one_line(piece) }).collect()
}

/// Text of a bundle for the page. Its line breaks are written by their number, so that no line of the file is one that
/// a bundle chose; its other control characters are replaced.
fn on_one_line(text: &str) -> String {
    // A slash ends nothing in text or in quotes, and there are thousands of them.
    let escaped = |line: &str| HtmlEscape(&with_micro(&clean(line))).to_string().replace("&#x2f;", "/");
    let lines: Vec<String> = text.lines().map(escaped).collect();
    lines.join("&#10;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_figure_ends_its_script_and_all_of_it_is_read_back() {
        let said = serde_json::json!({"name": "a, b: </script><!-- & 'quoted'", "values": [1.5, null]});
        let Ok(written) = compact_json(&Value::from(Serde(&said))) else { panic!("it is JSON") };
        let written = written.to_string();
        assert!(!written.contains(['<', '>', '&', '\'']), "{written}");
        assert!(written.contains("[1.5,null]"), "{written}");
        let back: Result<serde_json::Value, _> = serde_json::from_str(&written);
        assert!(back.is_ok_and(|back| back == said));
    }
}
