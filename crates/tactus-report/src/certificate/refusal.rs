//! Refuses bundles that can have no certificate.

use tactus_model::Evidence;
use tactus_model::bundle::Contents;

use super::CertificateError;
use super::short;
use crate::stats::Line;
use crate::units::beginning;

/// Longest name in an error.
const NAME: usize = 80;

/// Refuses a bundle that proves nothing, with the reason.
pub fn refused(contents: &Contents, lines: &[Line]) -> Result<(), CertificateError> {
    if let Some(first) = contents.damage.first() {
        return Err(CertificateError::Damaged(beginning(&short(first), 4 * NAME)));
    }
    if contents.manifest.finished.is_none() {
        return Err(CertificateError::Unfinished);
    }
    let measured = || lines.iter().filter(|line| line.has_numbers());
    // A measurement without a limit proves nothing, and does no harm if another one has a limit.
    let judged = || lines.iter().filter(|line| line.verdict.is_some());
    let worthless = judged().chain(measured().filter(|_| judged().next().is_none())).find_map(worthless);
    match worthless {
        Some(why) => Err(why),
        None if measured().next().is_none() => Err(CertificateError::NothingMeasured),
        None if judged().next().is_none() => Err(CertificateError::NoLimit),
        None if judged().all(|line| !line.has_numbers()) => Err(CertificateError::NothingMeasured),
        None => Ok(()),
    }
}

/// Why a measurement proves nothing about this machine.
fn worthless(line: &Line) -> Option<CertificateError> {
    let name = || beginning(&short(&line.name), NAME);
    match line.evidence? {
        Evidence::Emulated => Some(CertificateError::Emulated(name())),
        Evidence::Imported => Some(CertificateError::Imported(name())),
        Evidence::BareMetal | Evidence::VirtualHost => None,
    }
}
