//! Examples of each command: the last lines of its help, and a section of its manual page.

/// Lines that can be typed, and what each is for.
type Examples = &'static [(&'static str, &'static str)];

/// The examples of each command, by its name; those of `tactus` itself first. The help of a command has the first two.
pub const EXAMPLES: &[(&str, Examples)] = &[
    (
        "",
        &[
            ("tactus run", "Measure the host, a container and a virtual machine."),
            ("tactus run -i 1ms --max 100us", "Can it run a loop of 1 ms with at most 100 us of latency?"),
            ("tactus audit", "What adds latency, and what fixes most of it."),
        ],
    ),
    (
        "run",
        &[
            (
                "tactus run -i 1ms --max 100us --overruns 0",
                "Accept a 1 ms loop: a first look, in three environments.",
            ),
            (
                "tactus run --in host,podman --cpus 1 --load scheduler -D 60 --out first",
                "Host and container on CPU 1 under load, a minute each.",
            ),
            ("tactus run -D 1h --interleave 10m -i 1ms --max 100us", "An acceptance test of an hour each."),
            ("tactus run --into first", "Continue a run that was interrupted."),
            ("tactus run -D 24h --detach --out night", "Measure for a day; you may close the terminal."),
        ],
    ),
    (
        "measure",
        &[
            (
                "tactus measure -p 95 -i 200 -D 10",
                "One thread on each isolated CPU (if none: all except those of the first core), every 200 us.",
            ),
            (
                "tactus measure -a 1 -i 1ms --max 5ms -D 2 --load scheduler",
                "CPU 1, under load, with a limit.",
            ),
            ("tactus measure spin -a 1 -D 60", "Gaps of a thread that polls, as oslat."),
            ("tactus measure --in docker:plc -i 1ms --max 100us", "In a container that runs."),
        ],
    ),
    (
        "audit",
        &[
            ("tactus audit", "What adds latency here, and what fixes most of it."),
            (
                "tactus audit --only rt-throttling",
                "One check in full: what was read, why it matters, the fix.",
            ),
            ("tactus audit --in qemu --cmdline isolcpus=1", "A guest, booted for the audit."),
        ],
    ),
    (
        "tune",
        &[
            (
                "tactus tune plan --profile realtime --isolate 1",
                "What would change, and what each change risks.",
            ),
            ("tactus tune files podman --isolate 1", "Options and files for a real-time container."),
            (
                "tactus tune apply --profile realtime --isolate 2-7 --persist",
                "Change it, also after a reboot.",
            ),
            ("tactus tune revert", "Restore what was there before."),
            (
                "tactus tune files libvirt --isolate 2-7 --patch domain.xml --out domain-rt.xml",
                "Make a libvirt domain real-time.",
            ),
        ],
    ),
    (
        "prove",
        &[
            ("tactus prove vmstat-interval --quick", "What one setting gains: pairs with and without it."),
            ("tactus prove --all --dry-run", "Which settings can be tested here, and how long that takes."),
        ],
    ),
    (
        "compare",
        &[
            ("tactus compare before after", "What became worse, and what did not change."),
            ("tactus compare before after --gate", "For CI: exit code 1 if something became worse."),
        ],
    ),
    (
        "report",
        &[
            ("tactus report", "The newest run of this directory."),
            ("tactus report first --format junit --out junit.xml", "For a CI server."),
            ("tactus report --open", "Its page, in a browser."),
            ("tactus report first --class plc", "Is it fit for a PLC?"),
            (
                "tactus report first --certificate --customer 'ACME' --sign ~/.ssh/id_ed25519",
                "Two signed pages.",
            ),
            ("tactus report first --verify", "Who signed it, and whether a byte differs."),
        ],
    ),
    (
        "environments",
        &[
            ("tactus environments", "What can be measured here, and what the others need."),
            ("tactus environments --json", "The same for a script."),
        ],
    ),
    (
        "watch",
        &[
            ("tactus watch", "Follow your newest run from another terminal, and end with its exit code."),
            ("tactus watch --stop night", "End a run and keep what it measured."),
            ("tactus watch --serve", "The runs of this directory, in a browser on this machine."),
        ],
    ),
    (
        "fleet",
        &[
            ("tactus fleet collect lab/bundles --into data", "Bundles of many machines as one data set."),
            (
                "tactus fleet show data --max 100us",
                "Which machines miss the limit, and what they have in common.",
            ),
            (
                "tactus fleet run plan.toml --on slurm --select feature=rt --out lab",
                "One job for each node with the feature rt.",
            ),
            ("tactus fleet status lab", "The state of each machine, and the reason where it fails."),
        ],
    ),
    (
        "convert",
        &[
            ("tactus convert cyclictest.json --out first", "A bundle from another tool's output."),
            ("tactus convert first --to csv --out tables", "Tables of a run."),
            ("tactus convert --formats", "Every format that is read or written."),
        ],
    ),
    ("explain", &[("tactus explain p99", "What a word means."), ("tactus explain", "All words.")]),
    (
        "cyclictest",
        &[
            ("tactus cyclictest -q -p 95 -S -m -i 200 -h 400 -D 2", "A command line of cyclictest."),
            ("tactus cyclictest --help", "The supported options."),
        ],
    ),
    (
        "oslat",
        &[
            ("tactus oslat --duration 2 --rtprio 1 --cpu-list 1", "A command line of oslat."),
            ("tactus oslat --help", "The supported options."),
        ],
    ),
    (
        "kernel",
        &[
            ("tactus kernel list", "The available guest kernels."),
            ("tactus kernel fetch rt", "A PREEMPT_RT kernel for guests."),
        ],
    ),
    (
        "probe",
        &[
            ("tactus probe --out tactus-probe", "The probe, to copy it to a place that tactus cannot reach."),
            ("tactus probe --arch aarch64 --out tactus-probe", "The same for arm64."),
        ],
    ),
    (
        "completions",
        &[
            ("tactus completions bash > tactus.bash", "For bash: source the file."),
            ("tactus completions zsh > _tactus", "For zsh: put the file on the fpath."),
        ],
    ),
    (
        "man",
        &[
            ("tactus man --out man1", "One page for each command."),
            ("tactus man", "The page of tactus itself."),
        ],
    ),
];

/// The examples of the command of this name.
pub fn of(command: &str) -> Examples {
    EXAMPLES.iter().find(|(name, _)| *name == command).map_or(&[], |(_, examples)| examples)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    /// The words of a line as a shell takes it apart: what stands between quotes is one of them.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (at, piece) in line.split('\'').enumerate() {
            match at % 2 {
                0 => words.extend(piece.split_whitespace().map(str::to_owned)),
                _ => words.push(piece.to_owned()),
            }
        }
        words
    }

    #[test]
    fn every_example_is_a_command_line_that_is_understood() {
        for (command, examples) in EXAMPLES {
            for (example, _) in *examples {
                let line = words(example.split(['|', '>']).next().unwrap_or_default());
                assert!(command.is_empty() || line[1] == *command, "{example}");
                match Cli::try_parse_from(line) {
                    Err(error) if error.use_stderr() => panic!("{example}: {error}"),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn each_command_has_two_examples_or_more() {
        for command in Cli::command().get_subcommands() {
            assert!(of(command.get_name()).len() >= 2, "{}", command.get_name());
        }
    }
}
