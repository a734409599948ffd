use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tactus_model::event::Event;
use tactus_model::message::Note;
use tactus_model::outcome::{Ending, RowEnd};

use super::*;
use crate::state::tests::{at, planned, two_at_once};
use crate::view::Key;

const PLAIN: Look = Look { colour: false, unicode: true };

fn terminal(watched: &Watched, view: &View, look: Look, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(watched, view, look, frame)).unwrap();
    terminal
}

fn shown(watched: &Watched, view: &View, look: Look, width: u16, height: u16) -> String {
    terminal(watched, view, look, width, height).backend().to_string()
}

fn on(page: Page) -> View {
    View { page, ..View::default() }
}

#[test]
fn the_threads_of_all_environments_that_measure_at_80_by_24() {
    insta::assert_snapshot!(shown(&two_at_once(12), &View::default(), PLAIN, 80, 24));
}

#[test]
fn the_histogram_of_the_chosen_thread() {
    let view = View { chosen: 2, ..on(Page::Histogram) };
    insta::assert_snapshot!(shown(&two_at_once(12), &view, PLAIN, 80, 16));
}

#[test]
fn the_maxima_over_the_whole_time_without_unicode() {
    let view = View { chosen: 2, ..on(Page::Time) };
    insta::assert_snapshot!(shown(&two_at_once(40), &view, Look { unicode: false, ..PLAIN }, 70, 14));
}

#[test]
fn environments_and_what_was_said() {
    let mut watched = two_at_once(2);
    let note = Note::obstacle("CPU 2 entered a sleep state \u{1b}[31m of 200 us", "x");
    watched.take(&at(61_000, Event::Noted { environment: Some("host".into()), note }));
    let ending = Ending::because(RowEnd::Failed, "the guest was killed");
    watched.take(&at(62_000, Event::RowFinished { row: 1, ending, measured_ns: 3 }));
    insta::assert_snapshot!(shown(&watched, &on(Page::Notes), PLAIN, 80, 14));
}

#[test]
fn a_narrow_terminal_keeps_the_figures() {
    insta::assert_snapshot!(shown(&two_at_once(12), &View::default(), PLAIN, 48, 10));
}

#[test]
fn before_anything_measures_it_says_what_happens() {
    let mut watched = Watched::new("night", [planned("both", "host")]);
    watched.take(&at(0, Event::EnvironmentStarting { environment: "guest".into() }));
    insta::assert_snapshot!(shown(&watched, &View::default(), PLAIN, 80, 8));
}

#[test]
fn it_is_drawn_at_every_size_and_page_whatever_there_is() {
    let mut ended = two_at_once(3);
    ended.ended = Some(RunStatus::Interrupted);
    for watched in [Watched::default(), Watched::new("x", [planned("a", "b")]), two_at_once(1), ended] {
        for (width, height) in [(1, 1), (3, 50), (20, 4), (21, 5), (40, 6), (80, 24), (500, 200)] {
            for page in Page::ALL {
                for chosen in [0, 2, usize::MAX] {
                    for unicode in [false, true] {
                        let view = View { chosen, ..on(page) };
                        shown(&watched, &view, Look { colour: true, unicode }, width, height);
                    }
                }
            }
        }
    }
}

#[test]
fn without_colours_there_are_none_and_without_unicode_all_is_ascii() {
    let mut watched = two_at_once(12);
    let note = Note::obstacle("something", "x");
    watched.take(&at(3, Event::Noted { environment: None, note }));
    for page in Page::ALL {
        let terminal = terminal(&watched, &on(page), Look { colour: false, unicode: false }, 100, 30);
        let cells = &terminal.backend().buffer().content;
        assert!(cells.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
        assert!(cells.iter().all(|cell| cell.symbol().is_ascii()), "{page:?}");
        let coloured = self::terminal(&watched, &on(page), Look { colour: true, unicode: true }, 100, 30);
        assert!(coloured.backend().buffer().content.iter().any(|cell| cell.fg != Color::Reset));
    }
}

#[test]
fn the_chosen_thread_is_seen_however_many_there_are() {
    let mut watched = two_at_once(1);
    let mut total = tactus_model::latency::Totals::default();
    for cpu in 4..90 {
        watched.take(&at(0, crate::state::tests::ticked(0, cpu, 0, 1_000, 2_000, &mut total)));
    }
    for height in [8, 24] {
        let mut view = View::default();
        for _ in 0..60 {
            view.key(Key::Down, &watched);
        }
        let text = shown(&watched, &view, PLAIN, 80, height);
        assert!(text.contains("  62 t0 thread"), "{text}");
    }
}
