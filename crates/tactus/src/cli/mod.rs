//! The command line.

mod audit;
mod baseline;
mod blame;
mod compare;
mod convert;
mod cyclictest;
mod detach;
pub mod examples;
mod fleet;
mod help;
mod limits;
mod lock;
mod machine;
mod measure;
mod moved;
mod open;
mod oslat;
mod printed;
mod prove;
#[cfg(test)]
mod reference;
mod report;
mod restart;
mod run;
mod screen;
mod tune;
mod tune_files;
mod values;
mod watch;
mod words;

use clap::{Parser, Subcommand};

pub use audit::{Audit, Format as AuditFormat, Role as AuditRole, Threshold};
pub use compare::Compare;
pub use convert::{Convert, Unit};
pub use cyclictest::{Cyclictest, Lacking};
pub use fleet::{
    Fleet, FleetCollect, FleetCommand, FleetJob, FleetRender, FleetRun, FleetShow, FleetStatus, Wanted,
};
pub use help::command;
pub use lock::Lock;
pub use machine::{Environments, Kernel, KernelCommand, Probe};
pub use measure::{Measure, Policy};
pub use moved::moved;
pub use oslat::Oslat;
pub use prove::Prove;
pub use report::Report;
pub use run::Run;
pub use screen::Screen;
pub use tune::{Choose, Tune, TuneApply, TuneCommand, TuneDiff, TunePlan, TuneRevert, TuneVerify};
pub use tune_files::{Accel as FilesAccel, TuneFiles};
pub use watch::Watch;
pub use words::{Completions, Explain, Man};

/// tactus makes a Linux machine real-time, and proves it.
#[derive(Debug, Parser)]
#[command(
    name = "tactus",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    help_template = help::SCREEN
)]
pub struct Cli {
    /// Print to stderr what tactus does: commands, changes and decisions, with the time
    ///
    /// `TACTUS_LOG=debug` prints more, `TACTUS_LOG=tactus_system=debug,warn` chooses by crate.
    #[arg(long, global = true, display_order = 1000, hide_short_help = true)]
    pub verbose: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// The command. The first eight are listed; the help names the next four; the rest are in the manual pages.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this machine everywhere, or run a plan or a study
    Run(Run),
    /// Make one measurement, with the options of cyclictest
    Measure(Measure),
    /// Find what adds latency on this system, and how to fix it
    Audit(Audit),
    /// Plan, apply, verify and revert the fixes; write files
    Tune(Tune),
    /// Measure what a setting gains: an A/B test with and without it
    Prove(Prove),
    /// Compare runs: what became worse, and what did not change
    Compare(Compare),
    /// Show a run: text, page, JSON, JUnit and more
    Report(Report),
    /// List what can be measured here, and what the others need
    Environments(Environments),
    /// Follow or end a run in progress; show bundles in a browser
    #[command(hide = true)]
    Watch(Watch),
    /// Measure many machines (Slurm, Ansible, Kubernetes), and find what they have in common
    #[command(hide = true)]
    Fleet(Fleet),
    /// Read files of other tools (cyclictest, rtla, oslat...), and write them
    #[command(hide = true)]
    Convert(Convert),
    /// Explain a word: an environment, measurement, load, fault, check, study or format
    #[command(hide = true)]
    Explain(Explain),
    /// Measure this machine as cyclictest does, with its options and its output
    #[command(hide = true)]
    Cyclictest(Cyclictest),
    /// Poll this machine's CPUs for gaps as oslat does, with its options and its output
    #[command(hide = true)]
    Oslat(Oslat),
    /// Find, fetch and choose guest kernels
    #[command(hide = true)]
    Kernel(Kernel),
    /// Write the probe to a file, to copy it to where tactus cannot
    #[command(hide = true)]
    Probe(Probe),
    /// Print the completion script of a shell
    #[command(hide = true)]
    Completions(Completions),
    /// Print the manual page, or write one page per command
    #[command(hide = true)]
    Man(Man),
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    /// `make test` runs the blocks that begin with ```` ```sh tested ````. Those that it cannot run are understood.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test reads the book")]
    fn every_command_of_the_guide_is_one_that_the_command_line_takes() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let guide = std::fs::read_dir(root.join("docs/guide")).unwrap().map(|file| file.unwrap().path());
        let (mut taken, mut wrong) = (0, Vec::new());
        for page in guide.chain([root.join("README.md")]).filter(|page| page.is_file()) {
            for line in shell_lines(&std::fs::read_to_string(&page).unwrap()) {
                match Cli::try_parse_from(&line) {
                    Ok(_) => taken += 1,
                    Err(error) if !error.use_stderr() => taken += 1,
                    Err(error) => wrong.push(format!("{}: {}\n{error}", page.display(), line.join(" "))),
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(taken > 100, "{taken}");
    }

    /// The words of each `tactus ...` in blocks of shell, as far as a pipe, a redirection or a comment. Lines that describe
    /// a form (`[--wave 50]`, `slurm|ansible`) are none.
    fn shell_lines(page: &str) -> Vec<Vec<String>> {
        let mut lines = Vec::new();
        for block in page.split("\n```sh").skip(1) {
            let block = block.split_once("\n```").map_or(block, |(inside, _)| inside).replace("\\\n", " ");
            for line in
                block.lines().skip(1).filter(|line| ![" [-", " ..."].iter().any(|form| line.contains(form)))
            {
                let line = line.strip_prefix("sudo ").unwrap_or(line);
                if line.starts_with("tactus ") {
                    lines.extend(words(line));
                }
            }
        }
        lines
    }

    /// `None` for a form.
    fn words(line: &str) -> Option<Vec<String>> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for c in line.chars().chain([' ']) {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None, '"' | '\'') => quote = Some(c),
                (None, ' ') if !word.is_empty() => words.push(std::mem::take(&mut word)),
                (None, ' ') => {}
                (None, '|') if !word.is_empty() => return None,
                (None, '#' | '|' | '&' | ';' | '>' | '<') if word.is_empty() => break,
                (None, '>') if word == "2" => {
                    word.clear();
                    break;
                }
                _ => word.push(c),
            }
        }
        Some(words)
    }
}
