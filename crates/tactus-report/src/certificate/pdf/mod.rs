//! The two pages as PDF. The file is the same on every machine: it contains its font, and no time of writing.

mod face;
mod first;
mod paper;
mod second;
mod wrap;

use krilla::Document;
use krilla::metadata::Metadata;
use krilla::page::PageSettings;

use super::{Certificate, CertificateError};
use face::Faces;
use paper::{HIGH, Paper, WIDE};

/// A certificate as PDF: two pages of A4, with text that can be selected.
///
/// # Errors
/// When what the user gave has letters that its font lacks.
pub fn pdf(certificate: &Certificate) -> Result<Vec<u8>, CertificateError> {
    let faces = Faces::new().ok_or_else(|| fault("its font cannot be read"))?;
    has_letters(certificate, &faces)?;
    let mut document = Document::new();
    let title = format!("{}: {}", certificate.title, certificate.word);
    document.set_metadata(Metadata::new().title(title).language("en".into()).creator("tactus".into()));
    page(&mut document, &faces, |paper| first::draw(paper, certificate))?;
    page(&mut document, &faces, |paper| {
        second::draw(paper, certificate);
        Ok(())
    })?;
    document.finish().map_err(|error| fault(&format!("{error:?}")))
}

/// Adds a page that is drawn so.
fn page(
    document: &mut Document,
    faces: &Faces,
    draw: impl FnOnce(&mut Paper<'_, '_>) -> Result<(), CertificateError>,
) -> Result<(), CertificateError> {
    let size = PageSettings::from_wh(WIDE, HIGH).ok_or_else(|| fault("a page has no size"))?;
    let mut sheet = document.start_page_with(size);
    let mut surface = sheet.surface();
    let drawn = draw(&mut Paper::new(&mut surface, faces));
    surface.finish();
    sheet.finish();
    drawn
}

fn fault(why: &str) -> CertificateError {
    CertificateError::Pdf(why.to_owned())
}

/// Most letters without a glyph that an error names.
const NAMED: usize = 5;

/// Refuses names that would be rows of question marks: for a customer that would be worse than no
/// certificate.
fn has_letters(certificate: &Certificate, faces: &Faces) -> Result<(), CertificateError> {
    let given = &certificate.given;
    let all = [
        ("--title", &given.title),
        ("--customer", &given.customer),
        ("--site", &given.site),
        ("--operator", &given.operator),
        ("--serial", &given.serial),
    ];
    for (what, text) in all {
        let lacks = text.iter().flat_map(|text| text.chars()).filter(|letter| !faces.plain.has(*letter));
        let letters: String = lacks.take(NAMED).collect();
        if !letters.is_empty() {
            return Err(CertificateError::Letters { what, letters });
        }
    }
    Ok(())
}
