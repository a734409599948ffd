//! Bundles of a directory, served: by hand, and in headless Chromium.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests make the directories, and another program opens the pages"
)]

mod browser;
mod common;
mod pages;
mod token;
