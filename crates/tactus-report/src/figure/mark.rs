//! A mark of a series: it differs in shape as well as in colour.

use super::canvas::Canvas;
use super::theme::{SERIES, series};

const R: f64 = 4.0;
/// A square, a triangle, a diamond, and a triangle that stands on its tip.
const SHAPES: [&[(f64, f64)]; SERIES] = [
    &[(-R, -R), (R, -R), (R, R), (-R, R)],
    &[(0.0, -R - 1.0), (R + 1.0, R), (-R - 1.0, R)],
    &[(0.0, -R - 2.0), (R + 2.0, 0.0), (0.0, R + 2.0), (-R - 2.0, 0.0)],
    &[(-R - 1.0, -R), (R + 1.0, -R), (0.0, R + 1.0)],
];

/// Draws the mark of a series, full or hollow.
pub fn mark(canvas: &Canvas, (x, y): (f64, f64), n: usize, full: bool) {
    let shape = SHAPES.get(shape(n)).copied().unwrap_or_default();
    let mut points: Vec<(f64, f64)> = shape.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    if full {
        canvas.fill(&points, series(n), 1.0);
    } else {
        points.extend(points.first().copied());
        canvas.path(&points, series(n), 1);
    }
}

/// Where the colours begin again the shapes are others.
const fn shape(n: usize) -> usize {
    (n + n / SERIES) % SERIES
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_of_sixteen_series_have_the_same_colour_and_shape() {
        let all: BTreeSet<_> = (0..SERIES * SERIES).map(|n| (n % SERIES, shape(n))).collect();
        assert_eq!(all.len(), SERIES * SERIES);
    }

    #[test]
    fn a_mark_is_full_or_its_outline_alone() {
        let drawn = |full| Canvas::draw(20, |canvas| mark(canvas, (9.0, 9.0), 1, full));
        assert!(drawn(true).contains("<polygon") && !drawn(false).contains("<polygon"));
        assert!(drawn(false).contains("<polyline"));
    }
}
