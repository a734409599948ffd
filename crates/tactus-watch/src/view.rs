//! The view of a user, and the effects of keys: pure, so that it can be tested without a terminal.

use tactus_model::series::SeriesKey;

use crate::state::Watched;

/// The page that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// A line for each measuring thread, and the histogram of the chosen one.
    #[default]
    Threads,
    /// The histogram of the chosen thread alone.
    Histogram,
    /// The maxima of the chosen thread over the whole time.
    Time,
    /// Environments with their findings, and remarks.
    Notes,
}

impl Page {
    /// All of them, in the order of their keys.
    pub const ALL: [Self; 4] = [Self::Threads, Self::Histogram, Self::Time, Self::Notes];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Histogram => "histogram",
            Self::Time => "over time",
            Self::Notes => "notes",
        }
    }
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Tab, or arrow right.
    Next,
    /// Shift with Tab, or arrow left.
    Previous,
    /// Escape.
    Escape,
}

/// The request of a key to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing.
    Nothing,
    /// Remember this moment.
    Mark,
    /// End the run, and keep what was measured.
    End,
}

/// The view of a user.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The page that is shown.
    pub page: Page,
    /// The line that is chosen, among all threads of the rows that are shown.
    pub chosen: usize,
    /// The run as it was when the view was stopped.
    pub paused: Option<Box<Watched>>,
    /// Whether the user was asked what `q` means.
    pub ending: bool,
    /// Whether the run was asked to end.
    pub asked_to_end: bool,
    /// Whether the run belongs to another terminal: this one takes no marks, and cannot end the run.
    pub follows: bool,
}

/// The threads whose lines are shown: row and key.
#[must_use]
pub fn threads(watched: &Watched) -> Vec<(usize, &SeriesKey)> {
    let rows = watched.current().into_iter();
    rows.flat_map(|row| watched.rows[row].series.keys().map(move |key| (row, key))).collect()
}

impl View {
    /// Handles a key. `watched` is the run as it is now.
    pub fn key(&mut self, key: Key, watched: &Watched) -> Asked {
        if std::mem::take(&mut self.ending) {
            let ends = matches!(key, Key::Char('q' | 'y'));
            self.asked_to_end |= ends;
            return if ends { Asked::End } else { Asked::Nothing };
        }
        let lines = threads(self.paused.as_deref().unwrap_or(watched)).len();
        let at = Page::ALL.iter().position(|page| *page == self.page).unwrap_or(0);
        match key {
            Key::Char('q') if self.follows => return Asked::End,
            Key::Char('q') => self.ending = true,
            Key::Char('m') if !self.follows => return Asked::Mark,
            Key::Char('p' | ' ') => {
                self.paused = if self.paused.is_some() { None } else { Some(Box::new(watched.clone())) };
            }
            Key::Char('e') => self.chosen = self.next_environment(watched),
            Key::Char(digit @ '1'..='4') => {
                let number = usize::try_from(u32::from(digit) - u32::from('1')).unwrap_or(0);
                self.page = Page::ALL[number];
            }
            Key::Up | Key::Char('k') => self.chosen = self.chosen.min(lines).saturating_sub(1),
            Key::Down | Key::Char('j') => self.chosen = (self.chosen + 1).min(lines.saturating_sub(1)),
            Key::Next => self.page = Page::ALL[(at + 1) % Page::ALL.len()],
            Key::Previous => self.page = Page::ALL[(at + Page::ALL.len() - 1) % Page::ALL.len()],
            Key::Char(_) | Key::Escape => {}
        }
        Asked::Nothing
    }

    /// The first line of the environment after that of the chosen line.
    fn next_environment(&self, watched: &Watched) -> usize {
        let watched = self.paused.as_deref().unwrap_or(watched);
        let lines = threads(watched);
        let of = |line: usize| lines.get(line).map(|(row, _)| &watched.rows[*row].planned.environment);
        let here = of(self.chosen);
        (self.chosen + 1..lines.len()).find(|line| of(*line) != here).unwrap_or(0)
    }
}

/// The keys in bytes of a terminal. Unknown keys and cut sequences are left out.
#[must_use]
pub fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (0x1b, [b'[' | b'O', tail @ ..]) => {
                // Parameters, and then the byte that says what it is.
                let end = tail.iter().position(|byte| (0x40..0x7f).contains(byte));
                keys.extend(match end.map(|end| tail[end]) {
                    Some(b'A') => Some(Key::Up),
                    Some(b'B') => Some(Key::Down),
                    Some(b'C') => Some(Key::Next),
                    Some(b'D' | b'Z') => Some(Key::Previous),
                    _ => None,
                });
                rest = end.map_or(&[][..], |end| &tail[end + 1..]);
            }
            (0x1b, _) => keys.push(Key::Escape),
            (b'\t', _) => keys.push(Key::Next),
            (byte, _) if byte.is_ascii_graphic() || *byte == b' ' => keys.push(Key::Char(char::from(*byte))),
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::two_at_once;

    #[test]
    fn keys_are_read_from_bytes_and_cut_or_unknown_ones_are_left_out() {
        assert_eq!(keys(b"q\t1"), [Key::Char('q'), Key::Next, Key::Char('1')]);
        let arrows = keys(b"\x1b[A\x1bOB\x1b[C\x1b[D\x1b[Z");
        assert_eq!(arrows, [Key::Up, Key::Down, Key::Next, Key::Previous, Key::Previous]);
        assert_eq!(keys(b"\x1b[1;5Aq"), [Key::Up, Key::Char('q')]);
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys(b"\x1b[200~m"), [Key::Char('m')]);
        assert_eq!(keys(b"\x1b[12"), []);
        assert_eq!(keys("é\u{0}".as_bytes()), []);
    }

    #[test]
    fn q_asks_first_and_only_then_ends() {
        let (mut view, watched) = (View::default(), two_at_once(1));
        assert_eq!(view.key(Key::Char('q'), &watched), Asked::Nothing);
        assert_eq!(view.key(Key::Char('m'), &watched), Asked::Nothing, "another key: it goes on");
        assert!(!view.asked_to_end);
        assert_eq!(view.key(Key::Char('q'), &watched), Asked::Nothing);
        assert_eq!(view.key(Key::Char('q'), &watched), Asked::End);
        assert!(view.asked_to_end);
        let mut follower = View { follows: true, ..View::default() };
        assert_eq!(
            follower.key(Key::Char('m'), &watched),
            Asked::Nothing,
            "only the run's own terminal marks"
        );
        assert_eq!(follower.key(Key::Char('q'), &watched), Asked::End);
    }

    #[test]
    fn keys_choose_thread_environment_and_page_and_stop_the_view() {
        let (mut view, watched) = (View::default(), two_at_once(1));
        view.key(Key::Up, &watched);
        assert_eq!(view.chosen, 0);
        for _ in 0..9 {
            view.key(Key::Down, &watched);
        }
        assert_eq!(view.chosen, 2, "the last one");
        view.key(Key::Char('e'), &watched);
        assert_eq!(view.chosen, 0);
        view.key(Key::Char('e'), &watched);
        assert_eq!(view.chosen, 2, "the guest's first");
        view.key(Key::Previous, &watched);
        assert_eq!(view.page, Page::Notes);
        view.key(Key::Char('2'), &watched);
        assert_eq!(view.page, Page::Histogram);
        assert_eq!(view.key(Key::Char('m'), &watched), Asked::Mark);
        view.key(Key::Char('p'), &watched);
        assert!(view.paused.is_some());
        view.key(Key::Char(' '), &watched);
        assert!(view.paused.is_none());
    }
}
