//! Colours by role. A figure is drawn with sentinel colours. A page replaces them by CSS variables, and a
//! separate file by real colours.

use plotters::style::RGBColor;

/// Text and axes.
pub const INK: RGBColor = RGBColor(1, 1, 1);
/// Less important text.
pub const MUTED: RGBColor = RGBColor(1, 1, 2);
/// Grid lines.
pub const GRID: RGBColor = RGBColor(1, 1, 3);
/// A reference line: published, required.
pub const MARK: RGBColor = RGBColor(1, 1, 4);

/// Most series that a figure can distinguish.
pub const SERIES: usize = 4;

/// The solid colour of a series.
#[must_use]
pub fn series(n: usize) -> RGBColor {
    RGBColor(2, 2, number(n))
}

/// The same, as a dashed line.
pub fn dashed(n: usize) -> RGBColor {
    RGBColor(2, 3, number(n))
}

fn number(n: usize) -> u8 {
    u8::try_from(n % SERIES).unwrap_or(0)
}

/// Okabe and Ito's palette for all kinds of colour vision ("Color Universal Design", 2008), without the
/// colours that are too light on white: blue, vermilion, bluish green. Slate replaces their reddish purple,
/// which looks blue to a reader who sees no red.
const PALETTE: [&str; SERIES] = ["#0072b2", "#d55e00", "#009e73", "#3a4048"];

/// For a page: every colour is a variable of its style sheet.
#[must_use]
pub fn themed(svg: &str) -> String {
    // Each element, and each text, has a line: a page needs none of them. Its style sheet fills no line.
    let svg = replaced(svg, |role| format!("var(--{role})"));
    svg.replace(">\n", ">").replace("\n</", "</").replace("<polyline fill=\"none\"", "<polyline")
}

/// For a separate file: real colours on white.
#[must_use]
pub fn standalone(svg: &str) -> String {
    replaced(svg, |role| match role {
        "ink" => "#1d2530".into(),
        "muted" => "#5a6572".into(),
        "grid" => "#e3e7ec".into(),
        "mark" => "#8a1538".into(),
        series => PALETTE
            [series.trim_start_matches('s').parse::<usize>().unwrap_or(1).saturating_sub(1) % SERIES]
            .into(),
    })
}

fn replaced(svg: &str, colour: impl Fn(&str) -> String) -> String {
    let name = |RGBColor(r, g, b): RGBColor| format!("\"#{r:02X}{g:02X}{b:02X}\"");
    let mut svg = svg.to_owned();
    for (sentinel, role) in [(INK, "ink"), (MUTED, "muted"), (GRID, "grid")] {
        svg = svg.replace(&name(sentinel), &format!("\"{}\"", colour(role)));
    }
    svg = svg.replace(&name(MARK), &format!("\"{}\" stroke-dasharray=\"2 3\"", colour("mark")));
    for n in 0..SERIES {
        let own = colour(&format!("s{}", n + 1));
        svg = svg.replace(&name(series(n)), &format!("\"{own}\""));
        svg = svg.replace(&name(dashed(n)), &format!("\"{own}\" stroke-dasharray=\"5 3\""));
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentinel_is_replaced_in_both_themes() {
        let sentinels =
            [INK, MUTED, GRID, MARK].into_iter().chain((0..SERIES).flat_map(|n| [series(n), dashed(n)]));
        let svg: String =
            sentinels.map(|RGBColor(r, g, b)| format!("<path stroke=\"#{r:02X}{g:02X}{b:02X}\"/>")).collect();
        for shown in [themed(&svg), standalone(&svg)] {
            assert!(!shown.contains("\"#01") && !shown.contains("\"#02"), "{shown}");
        }
        assert!(themed(&svg).contains("var(--s4)") && standalone(&svg).contains("#3a4048"));
    }
}
