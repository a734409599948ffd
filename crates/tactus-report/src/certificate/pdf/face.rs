//! The font of a certificate. It is a part of the program, so that every machine writes the same file.

use krilla::text::{Font, GlyphId, KrillaGlyph};

static PLAIN: &[u8] = include_bytes!("../font/DejaVuSans.ttf");
static BOLD: &[u8] = include_bytes!("../font/DejaVuSans-Bold.ttf");

/// Its name, as drawings call it.
pub const FAMILY: &str = "DejaVu Sans";

/// Replaces a letter that the font lacks.
const REPLACEMENT: char = '\u{fffd}';

/// The font in both of its weights.
pub struct Faces {
    pub plain: Face,
    pub bold: Face,
}

impl Faces {
    /// Reads them; `None` if they are unreadable, which a test excludes.
    pub fn new() -> Option<Self> {
        Some(Self { plain: Face::of(PLAIN)?, bold: Face::of(BOLD)? })
    }

    /// Both as they are in the program.
    pub const fn bytes() -> [&'static [u8]; 2] {
        [PLAIN, BOLD]
    }
}

/// One weight.
pub struct Face {
    pub font: Font,
    face: ttf_parser::Face<'static>,
    per_em: f32,
}

impl Face {
    fn of(bytes: &'static [u8]) -> Option<Self> {
        let face = ttf_parser::Face::parse(bytes, 0).ok()?;
        let per_em = f32::from(face.units_per_em());
        Some(Self { font: Font::new(bytes.into(), 0)?, face, per_em })
    }

    /// Whether it has a letter.
    pub fn has(&self, letter: char) -> bool {
        self.face.glyph_index(letter).is_some()
    }

    /// A text with replacements for the letters that the font lacks.
    pub fn shown(&self, text: &str) -> String {
        text.chars().map(|letter| if self.has(letter) { letter } else { REPLACEMENT }).collect()
    }

    /// How wide a letter is, as a part of the size.
    pub fn wide(&self, letter: char) -> f32 {
        let advance = self.face.glyph_index(letter).and_then(|glyph| self.face.glyph_hor_advance(glyph));
        f32::from(advance.unwrap_or_default()) / self.per_em
    }

    /// How wide a text is, as a part of the size.
    pub fn width(&self, text: &str) -> f32 {
        text.chars().map(|letter| self.wide(letter)).sum()
    }

    /// A text letter by letter: this font has no kerning and no ligatures.
    pub fn glyphs(&self, text: &str) -> Vec<KrillaGlyph> {
        let glyph = |(at, letter): (usize, char)| {
            let id = self.face.glyph_index(letter).map_or(0, |glyph| glyph.0);
            let range = at..at + letter.len_utf8();
            KrillaGlyph::new(GlyphId::new(u32::from(id)), self.wide(letter), 0.0, 0.0, 0.0, range, None)
        };
        text.char_indices().map(glyph).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_the_letters_of_western_and_eastern_europe_and_all_that_this_program_writes() {
        let faces = Faces::new().unwrap();
        for letter in "azAZ09 \u{a0}µäßéÅłőşčΩλЖяі–—…·×≤→€№\u{fffd}".chars() {
            assert!(faces.plain.has(letter) && faces.bold.has(letter), "{letter}");
        }
        assert_eq!(faces.plain.shown("a漢b"), "a\u{fffd}b");
    }
}
