//! What a manual page has beside the options. Pure.

use std::fmt::Write;

/// Commands, by the name of their page, and what they are for.
type Examples = &'static [(&'static str, &'static [(&'static str, &'static str)])];

const EXAMPLES: Examples = &[
    (
        "tactus",
        &[
            ("tactus run --quick", "Measure this machine in every environment it has."),
            ("tactus run -i 1ms --max 100us", "Does it hold a loop of 1 ms?"),
            ("tactus audit", "What adds latency, and what would fix most of it."),
        ],
    ),
    (
        "tactus-run",
        &[
            ("tactus run --quick", "A first look: ten seconds for each scenario."),
            ("tactus run -D 1h --interleave 10m -i 1ms --max 100us --overruns 0", "An acceptance test."),
            ("tactus run my-plan.toml --out first", "A plan of one's own."),
            ("tactus run --into first", "Go on with a run that was interrupted."),
            ("tactus run -D 24h --detach --out night", "A day, without this terminal."),
        ],
    ),
    (
        "tactus-measure",
        &[
            ("tactus measure -p 95 -i 200 -D 10", "As cyclictest does."),
            ("tactus measure spin -a 2-3 -D 60", "Gaps of a thread that polls, as oslat does."),
            ("tactus measure --in docker:plc-runtime -i 1ms --max 100us", "In a container that runs."),
            ("tactus measure --load cache:bytes=8M --load scheduler", "With loads beside it."),
        ],
    ),
    ("tactus-oslat", &[("tactus oslat --duration 600 --rtprio 1 --cpu-list 4-5", "A line of oslat's own.")]),
    (
        "tactus-cyclictest",
        &[("tactus cyclictest -q -p 95 -S -m -i 200 -h 400 -D 10", "A line of cyclictest's own.")],
    ),
    (
        "tactus-audit",
        &[
            ("tactus audit --fail-on major", "As a gate."),
            ("tactus audit --in qemu --cmdline isolcpus=1", "A guest, which is booted for it."),
            ("tactus audit --only rt-throttling", "One check in full."),
        ],
    ),
    (
        "tactus-generate",
        &[(
            "tactus generate libvirt --isolate 2-7 --patch domain.xml --out domain-rt.xml",
            "Make a domain real-time.",
        )],
    ),
    (
        "tactus-prove",
        &[("tactus prove vmstat-interval --quick", "An A/B test of one setting, in randomised order.")],
    ),
    (
        "tactus-tune",
        &[
            ("tactus tune plan --profile realtime --isolate 2-7", "What would be changed, and how."),
            (
                "tactus tune apply --profile realtime --isolate 2-7 --persist",
                "Change it, over the next boot too.",
            ),
            ("tactus tune revert", "What was there before."),
        ],
    ),
    (
        "tactus-show",
        &[
            ("tactus show", "The newest bundle of this directory."),
            ("tactus show first --json", "For scripts."),
        ],
    ),
    (
        "tactus-attach",
        &[
            ("tactus attach", "Your newest run that goes on."),
            ("tactus attach night --plain", "Lines, and the exit status of the run."),
        ],
    ),
    ("tactus-stop", &[("tactus stop night", "End this run, and keep what it has measured.")]),
    (
        "tactus-serve",
        &[
            ("tactus serve measurements", "The bundles of a directory, in a browser on this machine."),
            ("tactus serve --listen 0.0.0.0:9465", "From elsewhere, with the token that is printed."),
        ],
    ),
    (
        "tactus-fleet",
        &[
            (
                "tactus fleet run plan.toml --on slurm --select feature=rt --out lab",
                "One job for each node with the feature rt; the same command again measures who is missing.",
            ),
            ("tactus fleet status lab", "How far each machine is, and why one is not."),
            ("tactus fleet show data --max 100us", "Who of a data set misses the deadline."),
        ],
    ),
    (
        "tactus-collect",
        &[("tactus collect lab/bundles --into data", "Bundles of many machines as tables of one data set.")],
    ),
    (
        "tactus-report",
        &[
            ("tactus report --open", "The page of the newest bundle, in a browser."),
            ("tactus report first --format junit --out junit.xml", "For a CI server."),
        ],
    ),
    (
        "tactus-compare",
        &[("tactus compare before after --gate", "Exit status 1 where something became worse.")],
    ),
    ("tactus-fitness", &[("tactus fitness first --require plc", "Is it fit for a PLC?")]),
    (
        "tactus-import",
        &[
            ("tactus import cyclictest.json --out first", "What another tool wrote."),
            (
                "tactus import after.json --name cyclictest --out second && tactus compare first second",
                "The same under the name of the first, so that the two are compared.",
            ),
        ],
    ),
    ("tactus-export", &[("tactus export first --format csv --out tables", "Tables.")]),
    (
        "tactus-environments",
        &[("tactus environments", "What is usable here, and what would make the rest so.")],
    ),
    ("tactus-kernel", &[("tactus kernel fetch rt", "A PREEMPT_RT kernel for guests.")]),
    (
        "tactus-probe",
        &[("tactus probe --arch aarch64 --out tactus-probe", "For a place that tactus cannot put it into.")],
    ),
    ("tactus-explain", &[("tactus explain p99", "What a word means.")]),
    ("tactus-completions", &[("tactus completions bash > tactus.bash", "To be sourced by bash.")]),
    ("tactus-man", &[("tactus man --out man1", "One page for each command.")]),
];

/// Exit statuses, of all commands.
const STATUS: &[(&str, &str)] = &[
    ("0", "Good. A reader of stdout that leaves early changes none of these."),
    ("1", "Findings, a limit that is broken, or something that became worse."),
    ("2", "It could not be done, or was interrupted; stderr says why, and a hint what would help."),
    ("3", "Inconclusive: too little was measured, the self-test was not passed, or the place is emulated."),
];

const FILES: &[(&str, &str)] = &[
    ("./tactus-PLAN-TIME", "The bundle of a run: what was measured, on what machine, with which settings."),
    (
        "/var/cache/tactus, ~/.cache/tactus, $TACTUS_CACHE_DIR",
        "Probes and guest kernels. They can be deleted when no run is on.",
    ),
    ("/run/tactus, $XDG_RUNTIME_DIR/tactus", "While a run is on: what must be reverted."),
    ("/var/lib/tactus", "What tuning has changed, and what was there before."),
];

/// All example lines.
#[cfg(test)]
pub fn examples() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().flat_map(|(_, examples)| examples.iter().map(|(line, _)| *line))
}

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
    if let Some((_, examples)) = EXAMPLES.iter().find(|(name, _)| *name == page) {
        section("EXAMPLES", examples);
    }
    section("EXIT STATUS", STATUS);
    section("FILES", FILES);
    let others = EXAMPLES.iter().map(|(name, _)| *name).filter(|name| *name != page);
    let others: Vec<String> = others.map(|name| format!("\\fB{}\\fR(1)", escaped(name))).collect();
    let _ =
        writeln!(text, ".SH \"SEE ALSO\"\n{}, \\fBcyclictest\\fR(8), \\fBoslat\\fR(8)", others.join(", "));
    text
}

/// Text that roff takes as it is: no escapes, and no line that would be a request.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
