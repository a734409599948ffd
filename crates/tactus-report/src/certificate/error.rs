//! Reasons for no certificate.

use crate::render::RenderError;

/// Why a bundle gets no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// Files of the bundle are not as they were written.
    #[error("no certificate: the bundle is damaged: {0}")]
    Damaged(String),
    /// The run has not ended yet, or died.
    #[error("no certificate: the run did not end its bundle")]
    Unfinished,
    /// Nothing has any numbers.
    #[error("no certificate: nothing was measured")]
    NothingMeasured,
    /// No limit was asked for.
    #[error("no certificate: no limit was given")]
    NoLimit,
    /// A measurement that has a limit ran under emulation.
    #[error("no certificate: the processor of `{0}` was emulated, which says nothing about hardware")]
    Emulated(String),
    /// Another tool made a measurement that has a limit.
    #[error("no certificate: another tool measured `{0}`, not tactus")]
    Imported(String),
    /// The font of the PDF lacks letters of the user's text.
    #[error("the font of the PDF has no letters for {letters} in {what}: it has Latin, Greek and Cyrillic")]
    Letters {
        /// The option.
        what: &'static str,
        /// Those letters, at most a few.
        letters: String,
    },
    /// A page could not be written.
    #[error(transparent)]
    Html(#[from] RenderError),
    /// The PDF could not be written.
    #[error("the PDF could not be written: {0}")]
    Pdf(String),
}

impl CertificateError {
    /// Says how to get a certificate.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Damaged(_) => {
                "a certificate needs the bundle as the run wrote it: use an undamaged copy, or measure again"
            }
            Self::Unfinished => "wait for the end of the run, or continue it: `tactus run --into BUNDLE`",
            Self::NothingMeasured => "`tactus report` prints the reason; measure again",
            Self::NoLimit => "ask for a limit when you measure: `tactus run --max 100us`",
            Self::Emulated(_) => {
                "measure on a machine with KVM, or leave the emulated environment out: `tactus run --only \
                    host --max 100us`"
            }
            Self::Imported(_) => "measure with tactus itself: `tactus run --max 100us`",
            Self::Letters { .. } => {
                "write it in other letters, or write the certificate as HTML: `--out FILE.html`"
            }
            Self::Html(error) => error.hint(),
            Self::Pdf(_) => {
                "this is a bug in tactus: report it with the bundle; HTML works: `--out FILE.html`"
            }
        }
    }
}
