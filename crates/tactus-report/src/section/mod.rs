//! The sections of a report: one file each, named in [`SECTIONS`], whose order is that of the report. Every
//! format goes through the table and knows none of them.

use tactus_model::bundle::Contents;
use tactus_model::document::Document;
use tactus_model::plan::{Page, Shown};

use crate::part::{Part, Reader};

/// A section of the report.
pub trait Section {
    /// Its word: the name of its file, and of its place on a page.
    fn name(&self) -> &'static str;
    /// Its heading.
    fn heading(&self) -> &'static str;
    /// The question that stands in its place where the section answers one.
    fn question(&self, _contents: &Contents) -> &'static str {
        self.heading()
    }
    /// Explains in one paragraph what it shows and how to read it.
    fn about(&self) -> &'static str;
    /// Whether the report of this bundle has it.
    fn applies(&self, contents: &Contents) -> bool;
    /// The line that replaces it on a page until it is unfolded; `None` if it is always open. `parts`: its
    /// contents there.
    fn folded(&self, _contents: &Contents, _parts: &[Part]) -> Option<String> {
        None
    }
    /// Its parts for a reader; empty if it is of no use to this reader.
    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part>;
    /// Puts its data into the JSON document, under its key.
    fn fill(&self, _contents: &Contents, _document: &mut Document) {}
    /// Its sentences among those that stand above everything else.
    fn headline(&self, _contents: &Contents) -> Vec<String> {
        Vec::new()
    }
    /// Its parts for a page of the plan that asks for it.
    fn on_page(&self, _contents: &Contents, _page: &Page, _shown: Shown) -> Vec<Part> {
        Vec::new()
    }
    /// Whether it has drawings: who wants those alone asks no other section.
    fn draws(&self) -> bool {
        false
    }
    /// Whether it stands at the head of a page rather than in its order.
    fn opens(&self) -> bool {
        false
    }
}

/// Declares the table and its modules.
macro_rules! registry {
    ($(#[$doc:meta])* $table:ident: dyn $kind:path; $($module:ident),+ $(,)?) => {
        $(pub mod $module;)+
        $(#[$doc])*
        pub static $table: &[&(dyn $kind + Sync)] = &[$(&$module::ENTRY),+];
        #[cfg(test)]
        const MODULES: &[&str] = &[$(stringify!($module)),+];
    };
}

registry! {
    /// Every section, in the order of the report.
    SECTIONS: dyn Section;
    answer, degradation, measurements, evidence, published, fitness, values, curves, network, breakdown, exits, matrices, systems, threads, separation, technologies, caches,
    partitions,
    injected, requirements, tail, claims, proofs, drawings, environments, controls, largest, blame, interrupts, audits, notes, facts, source,
}

/// Whether a page of the plan shows this, so that it does not stand by itself.
fn on_a_page(contents: &Contents, shown: Shown) -> bool {
    contents.plan.page.iter().any(|page| page.show.contains(&shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the sources are looked at")]
    fn every_file_of_a_section_stands_in_the_table_under_its_name() {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src/section");
        let mut files: Vec<String> = std::fs::read_dir(here)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .filter(|name| name != "mod")
            .collect();
        files.sort();
        let mut modules: Vec<&str> = MODULES.to_vec();
        modules.sort_unstable();
        assert_eq!(files, modules);
        let names: Vec<&str> = SECTIONS.iter().map(|section| section.name()).collect();
        assert_eq!(names, MODULES);
    }

    #[test]
    fn every_section_says_what_it_is() {
        for section in SECTIONS {
            assert!(section.about().ends_with('.') && section.about().len() > 40, "{}", section.name());
            assert!(section.heading().starts_with(char::is_uppercase), "{}", section.name());
        }
    }
}
