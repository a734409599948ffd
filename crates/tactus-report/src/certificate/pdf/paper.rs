//! A page that is drawn on. Lengths are points, and `y` grows downwards.

use krilla::color::rgb;
use krilla::geom::{PathBuilder, Point, Rect, Size, Transform};
use krilla::paint::Fill;
use krilla::surface::Surface;
use krilla_svg::{SurfaceExt, SvgSettings};

use super::face::{FAMILY, Face, Faces};
use super::fault;
use super::wrap::wrapped;
use crate::certificate::CertificateError;
use crate::figure::{Figure, standalone};
use crate::render::html::with_micro;

/// Width of A4.
pub const WIDE: f32 = 595.28;
/// Height of A4.
pub const HIGH: f32 = 841.89;
/// Space on the left and on the right.
pub const MARGIN: f32 = 42.5;
/// The width between.
pub const ROOM: f32 = WIDE - 2.0 * MARGIN;
/// Where a page begins.
pub const TOP: f32 = 40.0;
/// Where its last line begins.
const FOOT: f32 = HIGH - 36.0;
/// The end of all other contents.
pub const END: f32 = FOOT - 8.0;

/// A colour: red, green, blue.
pub type Colour = [u8; 3];
/// Text.
pub const INK: Colour = [0x1d, 0x25, 0x30];
/// Text that matters less.
pub const MUTED: Colour = [0x5a, 0x65, 0x72];
/// Thin lines.
pub const LINE: Colour = [0xc9, 0xd0, 0xd8];

/// How a text is set.
#[derive(Clone, Copy)]
pub struct Type {
    pub size: f32,
    pub bold: bool,
    pub colour: Colour,
}

impl Type {
    /// Text of this size.
    pub const fn plain(size: f32) -> Self {
        Self { size, bold: false, colour: INK }
    }

    /// Bold text of this size.
    pub const fn bold(size: f32) -> Self {
        Self { size, bold: true, colour: INK }
    }

    /// The same in another colour.
    pub const fn in_colour(self, colour: Colour) -> Self {
        Self { colour, ..self }
    }

    /// From one line to the next.
    pub const fn leading(self) -> f32 {
        self.size * 1.28
    }
}

/// Lines of text that are to be drawn.
pub struct Lines {
    lines: Vec<String>,
    of: Type,
}

impl Lines {
    /// How high they are together.
    pub fn high(&self) -> f32 {
        self.lines.iter().map(|_| self.of.leading()).sum()
    }
}

/// A page.
pub struct Paper<'a, 'b> {
    surface: &'a mut Surface<'b>,
    faces: &'a Faces,
}

impl<'a, 'b> Paper<'a, 'b> {
    /// An empty one.
    pub const fn new(surface: &'a mut Surface<'b>, faces: &'a Faces) -> Self {
        Self { surface, faces }
    }

    const fn face(&self, of: Type) -> &'a Face {
        if of.bold { &self.faces.bold } else { &self.faces.plain }
    }

    /// Breaks a text into at most `lines` lines of this width.
    pub fn set(&self, text: &str, of: Type, width: f32, lines: usize) -> Lines {
        Lines { lines: wrapped(self.face(of), of.size, &with_micro(text), width, lines), of }
    }

    /// Draws lines below `y`, and says where they end.
    pub fn lines(&mut self, lines: &Lines, x: f32, y: f32) -> f32 {
        self.aligned(lines, x, y, None)
    }

    /// The same, with the end of each line at `right`.
    pub fn lines_to(&mut self, lines: &Lines, right: f32, y: f32) -> f32 {
        self.aligned(lines, right, y, Some(right))
    }

    /// Sets a text and draws it.
    pub fn text(&mut self, text: &str, of: Type, (x, y): (f32, f32), width: f32, lines: usize) -> f32 {
        let set = self.set(text, of, width, lines);
        self.lines(&set, x, y)
    }

    fn aligned(&mut self, lines: &Lines, x: f32, y: f32, right: Option<f32>) -> f32 {
        let (face, of) = (self.face(lines.of), lines.of);
        let mut y = y;
        for line in &lines.lines {
            let x = right.map_or(x, |right| right - face.width(line) * of.size);
            let start = Point::from_xy(x, y + of.size * 0.98);
            self.surface.set_stroke(None);
            self.surface.set_fill(Some(fill(of.colour)));
            self.surface.draw_glyphs(start, &face.glyphs(line), face.font.clone(), line, of.size, false);
            y += of.leading();
        }
        y
    }

    /// A filled rectangle.
    pub fn bar(&mut self, (x, y): (f32, f32), (wide, high): (f32, f32), colour: Colour) {
        let mut path = PathBuilder::new();
        if let Some(rect) = Rect::from_xywh(x, y, wide, high) {
            path.push_rect(rect);
        }
        if let Some(path) = path.finish() {
            self.surface.set_stroke(None);
            self.surface.set_fill(Some(fill(colour)));
            self.surface.draw_path(&path);
        }
    }

    /// A line across the page.
    pub fn rule(&mut self, y: f32, thick: f32, colour: Colour) {
        self.bar((MARGIN, y), (ROOM, thick), colour);
    }

    /// The last line of a page.
    pub fn foot(&mut self, title: &str, page: usize) {
        let of = Type::plain(7.5).in_colour(MUTED);
        self.text(title, of, (MARGIN, FOOT), ROOM - 80.0, 1);
        let number = self.set(&format!("Page {page} of 2"), of, 80.0, 1);
        self.lines_to(&number, MARGIN + ROOM, FOOT);
    }

    /// A figure below `y`, as large as there is room for above `end`, in the middle; says where it ends.
    pub fn figure(&mut self, figure: &Figure, y: f32, end: f32) -> Result<f32, CertificateError> {
        let mut options = usvg::Options { font_family: FAMILY.into(), ..usvg::Options::default() };
        let fonts = options.fontdb_mut();
        for bytes in Faces::bytes() {
            fonts.load_font_data(bytes.to_vec());
        }
        fonts.set_sans_serif_family(FAMILY);
        let tree = usvg::Tree::from_str(&standalone(&figure.svg()), &options)
            .map_err(|error| fault(&format!("its figure cannot be read: {error}")))?;
        let (wide, high) = (tree.size().width(), tree.size().height());
        let scale = (ROOM / wide).min((end - y) / high);
        let Some(size) = Size::from_wh(wide * scale, high * scale).filter(|_| scale > 0.0) else {
            return Ok(y);
        };
        let x = MARGIN + (ROOM - size.width()) / 2.0;
        self.surface.push_transform(&Transform::from_translate(x, y));
        let drawn = self.surface.draw_svg(&tree, size, SvgSettings::default());
        self.surface.pop();
        drawn.map(|()| y + size.height()).ok_or_else(|| fault("its figure cannot be drawn"))
    }
}

fn fill([red, green, blue]: Colour) -> Fill {
    Fill { paint: rgb::Color::new(red, green, blue).into(), ..Fill::default() }
}
