//! The command line.

mod audit;
mod baseline;
mod blame;
mod bundle;
mod compare;
mod cyclictest;
mod data;
mod detach;
mod fleet;
mod generate;
mod limits;
mod lock;
mod machine;
mod measure;
mod open;
mod oslat;
mod printed;
mod prove;
mod restart;
mod run;
mod serve;
mod tune;
mod values;
mod watch;
mod words;

use clap::{Parser, Subcommand};

pub use audit::{Audit, Format as AuditFormat, Role as AuditRole, Threshold};
pub use bundle::{Export, Fitness, Import, Report, Show, Unit};
pub use compare::Compare;
pub use cyclictest::{Cyclictest, Lacking};
pub use data::Collect;
pub use detach::{Attach, Stop};
pub use fleet::{
    Fleet, FleetCollect, FleetCommand, FleetJob, FleetRender, FleetRun, FleetShow, FleetStatus, Wanted,
};
pub use generate::{Accel as GenerateAccel, Generate};
pub use lock::Lock;
pub use machine::{Environments, Kernel, KernelCommand, Probe};
pub use measure::{Measure, Policy};
pub use oslat::Oslat;
pub use prove::Prove;
pub use run::Run;
pub use serve::Serve;
pub use tune::{Choose, Tune, TuneApply, TuneCommand, TuneDiff, TunePlan, TuneRevert, TuneVerify};
pub use watch::Watch;
pub use words::{Completions, Explain, Man};

/// Makes a Linux machine real-time, and proves it: on the host, in containers, in virtual machines.
///
/// `tactus run --quick` measures this machine in every environment it has and writes a report.
#[derive(Debug, Parser)]
#[command(
    name = "tactus",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Say on stderr what is done: commands, changes and decisions, with time
    ///
    /// `TACTUS_LOG=debug` says more, `TACTUS_LOG=tactus_system=debug,warn` chooses by crate.
    #[arg(long, global = true, display_order = 1000)]
    pub verbose: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this machine in every environment it has, or perform a study or plan
    Run(Run),
    /// One measurement in one environment, with cyclictest's habits
    Measure(Measure),
    /// Measure this machine as cyclictest does, with its options and its output
    Cyclictest(Cyclictest),
    /// Poll this machine's CPUs for gaps as oslat does, with its options and its output
    Oslat(Oslat),
    /// Say what adds latency on a system, and what would fix it
    Audit(Audit),
    /// Write files for what is set elsewhere: boot loader, TuneD, libvirt, QEMU, containers, clusters
    Generate(Generate),
    /// A/B test of settings on this machine: pairs with and without each, in randomised order
    Prove(Prove),
    /// Plan, apply, verify and take back a tuning profile
    Tune(Tune),
    /// Show a bundle in the terminal
    Show(Show),
    /// Follow a run that goes on, from any terminal, and end as it ends
    Attach(Attach),
    /// End a run that goes on as Ctrl-C does: what was measured is kept
    Stop(Stop),
    /// Write a bundle's report
    Report(Report),
    /// Show the bundles of a directory in a browser, and follow runs that go on
    Serve(Serve),
    /// Measure many machines by the engine that they have (Slurm, Ansible, Kubernetes), and ask what they have in common
    Fleet(Fleet),
    /// Hold the runs of bundles against each other: what became worse, and what is as before
    Compare(Compare),
    /// Say which control applications a bundle's environments are fit for, at which cycle
    Fitness(Fitness),
    /// Read what cyclictest, rtla, oslat, jitterdebugger, rteval or HdrHistogram wrote, into a bundle
    Import(Import),
    /// Write a bundle as cyclictest's JSON or histogram, as HdrHistogram logs, CSV, Parquet or OpenMetrics
    Export(Export),
    /// Verify bundles of many machines and put them into one data set of Parquet tables
    Collect(Collect),
    /// List the environments: usable or not, and what would make the rest so
    Environments(Environments),
    /// Find, fetch and choose guest kernels
    Kernel(Kernel),
    /// Write the probe to a file, to put it where tactus cannot
    Probe(Probe),
    /// Explain a word: an environment, measurement, load, fault, study or format
    Explain(Explain),
    /// Print the completion script of a shell
    Completions(Completions),
    /// Print the manual page, or write one page per command
    Man(Man),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use std::path::Path;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
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
