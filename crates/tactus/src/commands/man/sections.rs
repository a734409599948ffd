//! The sections of a manual page beside the options. Pure.

use std::fmt::Write;

use crate::cli::examples;

/// Exit statuses, of all commands.
const STATUS: &[(&str, &str)] = &[
    ("0", "Success. A reader of stdout that closes early changes none of these."),
    ("1", "There are findings, a limit is exceeded, or something became worse."),
    ("2", "It failed or was interrupted; stderr prints the reason, and a hint."),
    (
        "3",
        "Inconclusive: too little was measured, the self-test did not pass, or the environment is \
        emulated.",
    ),
];

const FILES: &[(&str, &str)] = &[
    ("./tactus-PLAN-TIME", "The bundle of a run: what was measured, on what machine, with which settings."),
    (
        "/var/cache/tactus, ~/.cache/tactus, $TACTUS_CACHE_DIR",
        "Probes and guest kernels. They can be deleted while no run is in progress.",
    ),
    ("/run/tactus, $XDG_RUNTIME_DIR/tactus", "During a run: what must be reverted."),
    ("/var/lib/tactus", "The changes made by tuning, and the former values."),
];

/// The sections that follow the options on the page of this name.
pub fn of(page: &str) -> String {
    let mut text = String::new();
    let mut section = |title: &str, entries: &[(&str, &str)]| {
        let title = if title.contains(' ') { format!("\"{title}\"") } else { title.to_owned() };
        let _ = writeln!(text, ".SH {title}");
        for (term, about) in entries {
            let _ = write!(text, ".TP\n\\fB{}\\fR\n{}\n", escaped(term), escaped(about));
        }
    };
    let own = examples::of(page.strip_prefix("tactus").unwrap_or(page).trim_start_matches('-'));
    if !own.is_empty() {
        section("EXAMPLES", own);
    }
    section("EXIT STATUS", STATUS);
    section("FILES", FILES);
    let pages = examples::EXAMPLES.iter().map(|(name, _)| match *name {
        "" => "tactus".to_owned(),
        name => format!("tactus-{name}"),
    });
    let others: Vec<String> =
        pages.filter(|name| name != page).map(|name| format!("\\fB{}\\fR(1)", escaped(&name))).collect();
    let _ =
        writeln!(text, ".SH \"SEE ALSO\"\n{}, \\fBcyclictest\\fR(8), \\fBoslat\\fR(8)", others.join(", "));
    text
}

/// Text that roff takes as it is: no escapes, and no line that would be a request.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
