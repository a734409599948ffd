//! The figures as an image, for where SVG does not go.

use resvg::tiny_skia;
use tactus_model::bundle::Contents;

use super::RenderError;
use super::svg;

/// Pixels per unit of the drawing: sharp on most screens, small enough to attach.
const SCALE: f32 = 1.5;

/// Higher than this, image viewers give up.
const HIGHEST: u32 = 32_000;

/// Fonts that read well, in the order in which they are taken.
const FONTS: [&str; 7] =
    ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Open Sans", "Cantarell", "Ubuntu", "FreeSans"];

/// The drawing of [`svg`] as PNG.
///
/// # Errors
/// Without any font on this machine, or when the image would be too large.
pub fn render(contents: &Contents) -> Result<Vec<u8>, RenderError> {
    let mut options = usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    rasterize(&svg::draw(contents), options)
}

fn rasterize(drawing: &svg::Drawing, mut options: usvg::Options) -> Result<Vec<u8>, RenderError> {
    let family = family(options.fontdb_mut()).ok_or(RenderError::NoFont)?;
    options.fontdb_mut().set_sans_serif_family(&family);
    options.font_family = family;
    let tree = usvg::Tree::from_str(&drawing.svg, &options)
        .map_err(|error| RenderError::Image(error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let (width, height) = size.map_or((drawing.width, drawing.height), |size| (size.width(), size.height()));
    let too_large = || RenderError::TooLarge { width, height };
    if height > HIGHEST {
        return Err(too_large());
    }
    let mut image = tiny_skia::Pixmap::new(width, height).ok_or_else(too_large)?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut image.as_mut());
    image.encode_png().map_err(|error| RenderError::Image(error.to_string()))
}

/// The font to draw with: one that reads well, else any.
fn family(fonts: &usvg::fontdb::Database) -> Option<String> {
    let has = |name: &str| fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == name));
    FONTS
        .iter()
        .find(|name| has(name))
        .map(|name| (*name).to_owned())
        .or_else(|| fonts.faces().find_map(|face| face.families.first().map(|(family, _)| family.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_font_the_error_names_a_package() {
        let drawing = svg::Drawing { svg: "<svg/>".into(), width: 1, height: 1 };
        let error = rasterize(&drawing, usvg::Options::default()).unwrap_err();
        assert!(
            matches!(error, RenderError::NoFont) && error.hint().contains("fonts-dejavu-core"),
            "{error}"
        );
    }
}
