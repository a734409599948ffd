//! The template filled in.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, HtmlEscape, escape_formatter};
use tactus_model::bundle::Contents;

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

fn filled(page: &Page) -> Result<String, RenderError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => Ok(out.write_str(&on_one_line(text))?),
        _ => escape_formatter(out, state, value),
    });
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template("report.html", include_str!("report.html"))?;
    environment.add_template("blocks.html", include_str!("blocks.html"))?;
    environment.add_template("grid.html", include_str!("grid.html"))?;
    environment.add_template("table.html", include_str!("table.html"))?;
    environment.add_template("figure.html", include_str!("figure.html"))?;
    Ok(environment.get_template("report.html")?.render(minijinja::context! {
        page => Serde(page),
        style => include_str!("style.css"),
        script => include_str!("script.js"),
    })?)
}

/// Text of a bundle for the page. Its line breaks are written by their number, so that no line of the file is one that
/// a bundle chose; its other control characters are replaced.
fn on_one_line(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| HtmlEscape(&clean(line)).to_string()).collect();
    lines.join("&#10;")
}
