//! What a bundle says. Pure: [`tactus_model::bundle::Contents`] in, text, JSON, HTML, SVG, PNG and
//! Markdown out; nothing here touches a machine (but for the fonts that PNG needs).
//!
//! [`analysis`] turns contents into figures, comparisons, effects and verdicts; [`figure`] draws
//! them; [`render`] writes them down, one file per format.

pub mod analysis;
pub mod audit;
pub mod figure;
pub mod render;
pub mod units;
