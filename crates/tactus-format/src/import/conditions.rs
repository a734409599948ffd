//! The conditions of a measurement in the text of any instrument: the lines around its rows.

use tactus_model::scheduling::Policy;

use super::Recording;
use super::recording::{has_option, policy_of};
use super::text::short;

/// The most conditions that are kept of a file.
const MOST: usize = 16;

/// The conditions read so far.
#[derive(Default)]
pub(super) struct Conditions {
    /// How the instrument was called, where a line shows that.
    pub command: Option<String>,
    policy: Option<Policy>,
    kernel: Option<(String, String)>,
    said: Vec<String>,
}

impl Conditions {
    /// Takes a line without terminal sequences; false: it says nothing of this.
    pub fn line(&mut self, program: &str, line: &str) -> bool {
        let text = line.trim();
        let text_or_comment = text.trim_start_matches('#').trim_start();
        if let Some(rest) = text_or_comment.strip_prefix("policy:") {
            return self.policy_line(rest).is_some();
        }
        if let Some(command) = command(program, text) {
            // The first one: what follows may be an example, or the next run.
            self.command.get_or_insert_with(|| command.to_owned());
            return true;
        }
        if let Some(rest) = text.strip_prefix("Linux ").filter(|rest| rest.contains(" SMP ")) {
            let (node, kernel) = rest.split_once(' ').unwrap_or_default();
            self.kernel.get_or_insert_with(|| (short(node), short(kernel)));
            return true;
        }
        let said = text_or_comment.starts_with("/dev/cpu_dma_latency")
            || ["WARN", "Unable to ", "FATAL", "Error:", "ERROR"].iter().any(|word| text.starts_with(word));
        if said {
            self.say(short(text_or_comment));
        }
        said
    }

    /// ` other/other: loadavg: 3.71 4.06 3.51 1/1819 858177`
    fn policy_line(&mut self, rest: &str) -> Option<()> {
        let (policies, load) = rest.split_once(':').unwrap_or((rest, ""));
        let first = policies.trim().split('/').next()?;
        self.policy = Some(policy_of(first)?);
        if let Some(load) = load.trim().strip_prefix("loadavg:") {
            let load: Vec<&str> = load.split_whitespace().take(3).collect();
            // The last one is printed again and again: it is that of the run's end.
            self.said.retain(|said| !said.starts_with("load average "));
            self.say(format!("load average {}", short(&load.join(" "))));
        }
        Some(())
    }

    /// Keeps one more.
    pub fn say(&mut self, what: String) {
        if self.said.len() < MOST && !self.said.contains(&what) {
            self.said.push(what);
        }
    }

    /// Tells the recording.
    pub fn tell(self, recording: &mut Recording) {
        recording.policy = recording.policy.or(self.policy);
        if let Some(command) = self.command {
            recording.called(&command);
        }
        if let Some((node, kernel)) = self.kernel {
            (recording.node, recording.kernel) = (Some(node), Some(kernel));
        }
        recording.conditions.extend(self.said);
    }
}

/// `cyclictest -p 80` of a line that shows it: behind a prompt, a path or a few words.
fn command<'a>(program: &str, line: &'a str) -> Option<&'a str> {
    let at = line.match_indices(program).map(|(at, _)| at).find(|at| {
        let behind = &line[at + program.len()..];
        let before = line[..*at].chars().next_back();
        behind.starts_with(" -")
            && before.is_none_or(|c| c.is_whitespace() || c == '/' || c == '`' || c == '"')
    })?;
    let command = line[at..].split(['`', '"', '>', '|', ';']).next().unwrap_or_default().trim_end();
    (command.len() < 500).then_some(command)
}

/// Whether a line shows how a program was called.
pub(super) fn is_command(program: &str, line: &str) -> bool {
    command(program, line.trim()).is_some()
}

/// cyclictest called without a priority and a policy measures with SCHED_OTHER.
pub(super) fn without_priority(command: &str) -> bool {
    !has_option(command, 'p', "priority") && !has_option(command, 'y', "policy")
}
