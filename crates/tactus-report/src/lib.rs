//! The report of a bundle. Pure: [`tactus_model::bundle::Contents`] in, text, JSON, HTML, SVG, PNG and
//! Markdown out; nothing here touches a machine (except for the fonts that PNG needs).
//!
//! [`row`] describes one row and [`stats`] several rows together. [`answer`] decides about a deadline, and
//! [`fitness`] about classes of applications. A [`section`] is a file that makes one part of the report, out
//! of [`part`]s without a format; [`figure`] draws. [`compare`] compares the runs of one bundle with those of
//! another. [`render`] writes the sections, one file per format; [`document()`] is the same in numbers. A
//! [`certificate`] is the answer on two pages of paper.

pub mod answer;
pub mod audit;
pub mod certificate;
pub mod compare;
mod document;
pub mod figure;
pub mod fitness;
pub mod part;
pub mod render;
pub mod row;
pub mod section;
pub mod stats;
pub mod units;
mod walkthrough;

pub use document::document;
pub use walkthrough::headline;
