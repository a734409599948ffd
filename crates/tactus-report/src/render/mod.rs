//! One file per format, one line in the table below.

pub mod github;
pub mod html;
pub mod json;
pub mod junit;
pub mod ktap;
pub mod lava;
pub mod markdown;
#[cfg(feature = "png")]
pub mod png;
pub mod svg;
pub mod text;

use tactus_model::bundle::Contents;

/// A format that a report can have.
#[derive(Debug)]
pub struct Format {
    /// As `tactus report --format` takes it.
    pub name: &'static str,
    /// Its media type.
    pub media: &'static str,
    /// One line for lists.
    pub about: &'static str,
    /// Writes the contents of a bundle in it.
    pub render: fn(&Contents) -> Result<Vec<u8>, RenderError>,
}

/// Every format.
pub static FORMATS: &[Format] = &[
    Format {
        name: "html",
        media: "text/html",
        about: "one page for a colleague: table, claims, figures, facts; a single file that needs no network",
        render: |contents| html::render(contents).map(String::into_bytes),
    },
    Format {
        name: "text",
        media: "text/plain",
        about: "the table of `tactus report`, 100 columns wide and without colour",
        render: |contents| Ok(text::render(contents, text::Style::default()).into_bytes()),
    },
    Format {
        name: "json",
        media: "application/json",
        about: "the document of `tactus report --json`, a stable contract with a schema",
        render: |contents| json::render(contents).map(String::into_bytes),
    },
    Format {
        name: "markdown",
        media: "text/markdown",
        about: "table, claims and notes for a README, an issue or a pull request",
        render: |contents| Ok(markdown::render(contents).into_bytes()),
    },
    Format {
        name: "junit",
        media: "application/xml",
        about: "verdicts for a CI server: a test case for each requirement of a scenario",
        render: |contents| junit::render(contents).map(String::into_bytes),
    },
    Format {
        name: "github",
        media: "text/plain",
        about: "verdicts as annotations of a GitHub workflow",
        render: |contents| Ok(github::render(contents).into_bytes()),
    },
    Format {
        name: "ktap",
        media: "text/plain",
        about: "verdicts in the kernel's test format (KTAP)",
        render: |contents| Ok(ktap::render(contents).into_bytes()),
    },
    Format {
        name: "lava",
        media: "text/plain",
        about: "verdicts as signals of a LAVA job, with what was measured",
        render: |contents| Ok(lava::render(contents).into_bytes()),
    },
    Format {
        name: "svg",
        media: "image/svg+xml",
        about: "all figures, one below the other",
        render: |contents| Ok(svg::render(contents).into_bytes()),
    },
    #[cfg(feature = "png")]
    Format {
        name: "png",
        media: "image/png",
        about: "all figures as an image; needs a font on this machine",
        render: png::render,
    },
];

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// PNG without any font.
    #[error("this machine has no font: an image would have no words and numbers")]
    NoFont,
    /// The figures are too large for an image.
    #[error("an image of {width} x {height} pixels is too large")]
    TooLarge {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
    },
    /// The figures could not be turned into an image.
    #[error("the figures could not be drawn as an image: {0}")]
    Image(String),
    /// The page's template failed.
    #[error("the page could not be written: {0:#}")]
    Template(#[from] minijinja::Error),
    /// The document could not be written as JSON.
    #[error("the document could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The verdicts could not be written as XML.
    #[error("the verdicts could not be written as JUnit XML: {0}")]
    Junit(#[from] quick_junit::SerializeError),
}

impl RenderError {
    /// Says how to avoid the error.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoFont => "install a font, such as the package fonts-dejavu-core, or use --format svg",
            Self::TooLarge { .. } => "use --format svg, which has no limit",
            Self::Image(_) => "use --format svg; this is a bug in tactus: report it with the bundle",
            Self::Template(_) | Self::Json(_) | Self::Junit(_) => {
                "this is a bug in tactus: report it with the bundle"
            }
        }
    }
}

#[cfg(all(test, feature = "png"))]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the sources are looked at")]
    fn every_file_of_a_format_stands_in_the_table() {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src/render");
        let mut files: Vec<String> = std::fs::read_dir(here)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .filter(|name| name != "mod")
            .collect();
        files.sort();
        let mut names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        names.sort_unstable();
        assert_eq!(files, names);
    }
}
