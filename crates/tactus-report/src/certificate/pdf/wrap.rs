//! Text in lines that fit.

use super::face::Face;

/// The mark at the place of a cut.
const ELLIPSIS: char = '…';

/// Breaks `text` into at most `lines` lines, none wider than `most` at this size. Lines break at spaces, or
/// within a word that is wider than a line. The rest of a text that does not fit is cut, with an ellipsis.
pub fn wrapped(face: &Face, size: f32, text: &str, most: f32, lines: usize) -> Vec<String> {
    let text = face.shown(text);
    let room = most / size;
    let mut all: Vec<String> = Vec::new();
    let (mut line, mut wide) = (String::new(), 0.0);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let own = face.width(word);
        let gap = if line.is_empty() { 0.0 } else { face.wide(' ') };
        if wide + gap + own <= room {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
            wide += gap + own;
        } else {
            if !line.is_empty() {
                all.push(std::mem::take(&mut line));
                wide = 0.0;
            }
            for letter in word.chars() {
                let own = face.wide(letter);
                if wide + own > room && !line.is_empty() {
                    all.push(std::mem::take(&mut line));
                    wide = 0.0;
                }
                line.push(letter);
                wide += own;
            }
        }
        // The rest is cut anyway.
        if all.len() > lines {
            break;
        }
    }
    if !line.is_empty() {
        all.push(line);
    }
    if all.len() > lines {
        all.truncate(lines);
        if let Some(last) = all.last_mut() {
            *last = cut(face, last, room);
        }
    }
    all
}

/// A line with an ellipsis at its end.
fn cut(face: &Face, line: &str, room: f32) -> String {
    let mut kept = line.to_owned();
    while face.width(&kept) + face.wide(ELLIPSIS) > room && kept.pop().is_some() {}
    kept.truncate(kept.trim_end().len());
    kept.push(ELLIPSIS);
    kept
}

#[cfg(test)]
mod tests {
    use super::super::face::Faces;
    use super::*;

    #[test]
    fn no_line_is_wider_than_its_room_and_what_is_cut_says_so() {
        let faces = Faces::new().unwrap();
        let face = &faces.plain;
        let fits = |lines: &[String], most: f32| lines.iter().all(|line| face.width(line) * 10.0 <= most);
        assert_eq!(wrapped(face, 10.0, "", 100.0, 2), Vec::<String>::new());
        assert_eq!(wrapped(face, 10.0, "one two", 100.0, 2), ["one two"]);
        assert_eq!(wrapped(face, 10.0, "one two", 30.0, 2), ["one", "two"]);
        for text in ["x".repeat(5_000), "word ".repeat(5_000), "ab ".to_owned() + &"y".repeat(500)] {
            let lines = wrapped(face, 10.0, &text, 100.0, 3);
            assert!(lines.len() == 3 && fits(&lines, 100.0), "{lines:?}");
            assert!(lines[2].ends_with('…'), "{lines:?}");
        }
        // All of it fits, to the last letter.
        let whole = wrapped(face, 10.0, "aaaa bbbb cccc", 30.0, 3);
        assert_eq!(whole, ["aaaa", "bbbb", "cccc"]);
        assert_eq!(wrapped(face, 10.0, "aaaa bbbb cccc d", 30.0, 3)[2], "ccc…");
    }
}
