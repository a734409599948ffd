//! Where the report comes from: its plan and its bundle.

use tactus_model::bundle::Contents;

use super::Section;
use crate::part::{Part, Reader};
use crate::units::clean;

/// The section.
pub struct Source;
/// Its entry.
pub static ENTRY: Source = Source;

impl Section for Source {
    fn name(&self) -> &'static str {
        "source"
    }

    fn heading(&self) -> &'static str {
        "Plan and bundle"
    }

    fn about(&self) -> &'static str {
        "The plan as it was resolved on this machine, and whether the bundle is unchanged."
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        Some(bundle(contents))
    }

    fn applies(&self, _: &Contents) -> bool {
        true
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        match reader {
            Reader::Page => vec![plan(contents), Part::Remark(bundle(contents))],
            Reader::Terminal | Reader::Markdown => Vec::new(),
        }
    }
}

fn plan(contents: &Contents) -> Part {
    let text = toml::to_string(&contents.plan);
    let text = text.unwrap_or_else(|error| format!("the plan cannot be shown: {error}"));
    Part::Source("The plan, as it was resolved on this machine".into(), text)
}

fn bundle(contents: &Contents) -> String {
    let manifest = &contents.manifest;
    let whole = match manifest.files.len() {
        _ if !contents.damage.is_empty() => "The bundle is damaged: see the top of this page.".into(),
        0 => "The bundle has no checksums.".into(),
        files => format!("The checksums of all {files} files of the bundle are correct."),
    };
    let format = manifest.format;
    format!(
        "{whole} Bundle format {}.{}, written by tactus {}.",
        format.major,
        format.minor,
        clean(&manifest.tactus)
    )
}
