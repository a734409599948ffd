//! What a bundle says. Pure: [`tactus_model::bundle::Contents`] in, text, JSON, HTML, SVG, PNG and
//! Markdown out; nothing here touches a machine (but for the fonts that PNG needs).
//!
//! [`row`] says what one row has, [`stats`] what several say together, [`answer`] what that means for a deadline,
//! [`fitness`] what they suffice for. A
//! [`section`] is a file that makes of them one part of the report, out of [`part`]s that know no format; [`figure`]
//! draws. [`compare`] holds the runs of one bundle against those of another. [`render`] writes the sections down, one file per format; [`document()`] is the same in numbers.
//! A [`certificate`] is the answer on two pages of paper.

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
