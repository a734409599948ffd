//! The formats that a comparison can have.

use tactus_model::document::CompareDocument;

use super::chapters::page;
use super::condition::Condition;
use crate::part::Reader;
use crate::render::{RenderError, github, html, json, junit, markdown, text};

/// A format.
#[derive(Debug)]
pub struct Format {
    /// As `tactus compare --format` takes it.
    pub name: &'static str,
    /// Writes a comparison in it.
    pub render: fn(&CompareDocument, &[Condition]) -> Result<Vec<u8>, RenderError>,
}

/// Every format.
pub static FORMATS: &[Format] = &[
    Format {
        name: "text",
        render: |document, conditions| {
            Ok(text::chapters(&page(document, conditions, Reader::Terminal), text::Style::default())
                .into_bytes())
        },
    },
    Format { name: "json", render: |document, _| Ok(json::text(document)?.into_bytes()) },
    Format {
        name: "html",
        render: |document, conditions| {
            html::chapters(page(document, conditions, Reader::Page)).map(String::into_bytes)
        },
    },
    Format {
        name: "markdown",
        render: |document, conditions| {
            Ok(markdown::chapters(&page(document, conditions, Reader::Markdown)).into_bytes())
        },
    },
    Format { name: "junit", render: |document, _| junit::comparison_of(document).map(String::into_bytes) },
    Format { name: "github", render: |document, _| Ok(github::comparison_of(document).into_bytes()) },
];
