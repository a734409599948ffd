//! A chapter of a page that is no bundle's report.

use super::{Answer, Part};

/// A chapter: its heading, how to read it, and its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Chapter {
    /// Its place on a page.
    pub id: &'static str,
    /// Its heading.
    pub heading: &'static str,
    /// How it is read.
    pub about: &'static str,
    /// Its parts.
    pub parts: Vec<Part>,
}

/// A page of chapters.
#[derive(Clone, Debug, PartialEq)]
pub struct Chapters {
    /// Its heading.
    pub title: String,
    /// The kind of page, in a word.
    pub kind: &'static str,
    /// Its subject: names and values.
    pub about: Vec<(String, String)>,
    /// Its result. A page begins with it, or else with the first of the sentences.
    pub answer: Option<Answer>,
    /// The sentences above everything else.
    pub headline: Vec<String>,
    /// The chapters.
    pub chapters: Vec<Chapter>,
}
