//! The most helpful next step, from the findings of the audit.

use tactus_model::bundle::Contents;
use tactus_model::finding::{Action, Audit, Severity};

use crate::part::Next;
use tactus_model::text::quoted;

use crate::units::clean;

/// The first thing to do: the first action from the audit of the machine, or else of the first audited
/// environment.
pub fn step(contents: &Contents) -> Option<Next> {
    let machine = contents.audits.iter().find(|(at, _)| is_machine(contents, at));
    let (environment, audit) = machine.or_else(|| contents.audits.iter().next())?;
    let action = audit.actions.iter().find(|action| action.severity > Severity::Info)?;
    let is_id = |id: &&String| id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let explained =
        || action.fixes.first().filter(is_id).map_or_else(String::new, |id| format!("tactus explain {id}"));
    let command = action.known_command().map_or_else(explained, str::to_owned);
    // Without a command the title alone follows `next:`, and a stranger's bundle may contain any title.
    if command.is_empty() && !contents.own {
        return None;
    }
    let place = if machine.is_some() { String::new() } else { format!("in {environment}: ") };
    Some(Next {
        title: title(&action.title),
        command: clean(&command),
        why: clean(&(place + &worth(audit, action))),
    })
}

/// A title as it stands behind `next:`: nothing in it ends, joins or redirects a command of a shell.
pub fn title(text: &str) -> String {
    let kept: String =
        clean(text).chars().map(|c| if "|;&$`<>#\\\"'".contains(c) { ' ' } else { c }).collect();
    kept.trim_start_matches([' ', '(']).to_owned()
}

/// Whether an audit is that of the machine itself. In a plan with states of the machine `host@STATE` is.
fn is_machine(contents: &Contents, at: &str) -> bool {
    let name = at.split_once('@').map_or(at, |(name, _)| name);
    contents.plan.environment.get(name).map_or(name, |spec| spec.kind.as_str()) == "host"
}

/// The findings that an action fixes, the worst first: "fixes smt, watchdogs and 3 more", and how severe they
/// are.
fn worth(audit: &Audit, action: &Action) -> String {
    const NAMED: usize = 3;
    let severity = |id: &String| audit.found().find(|found| found.id == *id).map(|found| found.severity);
    let mut worst_first: Vec<&String> = action.fixes.iter().collect();
    worst_first.sort_by_key(|id| std::cmp::Reverse(severity(id)));
    let names: Vec<String> = worst_first.iter().take(NAMED).map(|id| title(id)).collect();
    let more = match action.fixes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("fixes {}{more}; worst: {}", names.join(", "), action.severity)
}

/// The same step with the whole command, where it names an option alone and the command that was typed is known.
pub fn whole(typed: &[String], next: Next) -> Next {
    let told = next.command.split_once(' ').filter(|(option, _)| option.starts_with("--"));
    let ([_, rest @ ..], Some((option, value))) = (typed, told) else { return next };
    // Not the program: a stranger's bundle may name any.
    Next { command: format!("tactus {}", called_again(rest, option, value)), ..next }
}

/// Commands by which a stranger's bundle may have been made, and which may be shown as the next step.
const MEASURING: [&str; 2] = ["run", "measure"];
/// Their options that name no program, file or device, with a value or without.
const VALUES: [&str; 19] = [
    "-i",
    "--interval",
    "--max",
    "--jitter",
    "--p99",
    "--p99.9",
    "--p99.99",
    "--p99.999",
    "--tail",
    "--overruns",
    "--in",
    "-a",
    "--cpus",
    "--load",
    "-D",
    "--duration",
    "--repeat",
    "--only",
    "--priority",
];
const FLAGS: [&str; 5] = ["--quick", "--long", "--json", "--plain", "--judge-emulated"];

/// Whether a command from a bundle may be shown to be copied: it measures, and the values of its options are
/// names and numbers. A plan, a program, a file, a device or a load that runs a command may come from a
/// stranger.
pub fn is_harmless(typed: &[String]) -> bool {
    let [_, command, rest @ ..] = typed else { return false };
    let plain = |value: &str| {
        !value.contains("command")
            && value.chars().all(|c| c.is_ascii_alphanumeric() || ".,:=!_-".contains(c))
    };
    let mut words = rest.iter();
    let mut options = std::iter::from_fn(|| {
        let word = words.next()?;
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None if VALUES.contains(&word.as_str()) => {
                (word.as_str(), Some(words.next().map_or("", String::as_str)))
            }
            None => (word.as_str(), None),
        };
        Some(value.map_or_else(
            || FLAGS.contains(&option),
            |value| VALUES.contains(&option) && !value.is_empty() && !value.starts_with('-') && plain(value),
        ))
    });
    MEASURING.contains(&command.as_str()) && options.all(|harmless| harmless)
}

/// Arguments as a shell takes them, with this value of an option instead of the present one. A bundle is left
/// out, because it is full by then.
#[must_use]
pub fn called_again(arguments: &[String], option: &str, value: &str) -> String {
    let mut command = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        // The present value of the option, and other ways to give it.
        match word.as_str() {
            "--quick" | "--long" if option == "--duration" => {}
            "-D" if option == "--duration" => drop(rest.next()),
            short if option == "--duration" && short.starts_with("-D") => {}
            same if same == option => drop(rest.next()),
            same if same.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')) => {}
            "--out" | "--into" => drop(rest.next()),
            out if out.starts_with("--out=") || out.starts_with("--into=") => {}
            // A user typed it, and a bundle may come from a stranger.
            other => command.push(quoted(&clean(other))),
        }
    }
    command.extend([option.to_owned(), value.to_owned()]);
    command.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(typed: &[&str], step: &str) -> String {
        let typed: Vec<String> = typed.iter().map(|word| (*word).to_owned()).collect();
        whole(&typed, Next { title: String::new(), command: step.into(), why: String::new() }).command
    }

    #[test]
    fn a_command_of_somebody_elses_bundle_is_shown_where_it_names_no_program_file_or_device() {
        let typed = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for line in [
            "tactus run",
            "x run -i 1ms --max 100us --cpus 1-3,!2 --in host,docker:web --load scheduler --quick",
            "tactus measure -D 2 --p99.99=50us --load cache:bytes=8M",
        ] {
            assert!(is_harmless(&typed(line)), "{line}");
        }
        for line in [
            "tactus",
            "",
            "tactus kernel fetch",
            "tactus run plan.toml --trust",
            "tactus run /tmp/x/plan.toml",
            "tactus run --in qemu --qemu /tmp/evil",
            "tactus measure --qemu=evil",
            "tactus measure --in qemu --qemu-arg=-loadvm",
            "tactus run --load command:curl",
            "tactus run --load=command:curl",
            "tactus run --file ./x",
            "tactus run --in a/b",
            "tactus run -D",
            "tactus run --max --trust",
            "tactus run --metrics 0.0.0.0:80",
            "tactus run --in $(id)",
        ] {
            assert!(!is_harmless(&typed(line)), "{line}");
        }
    }

    #[test]
    fn a_step_that_is_an_option_becomes_the_whole_command() {
        for (typed, says) in [
            (&["tactus", "run", "gate.toml", "--quick"][..], "tactus run gate.toml --duration 101s"),
            (&["tactus", "measure", "-D", "2", "-a", "1"], "tactus measure -a 1 --duration 101s"),
            (&["tactus", "run", "--duration=2s", "--max", "1ms"], "tactus run --max 1ms --duration 101s"),
            (&["./tactus", "run", "my plan.toml", "--out", "x"], "tactus run 'my plan.toml' --duration 101s"),
            (&["rm", "-D2", "-a", "1"], "tactus -a 1 --duration 101s"),
            (&["tactus", "run", "it's"], r"tactus run 'it'\''s' --duration 101s"),
            (&[], "--duration 101s"),
        ] {
            assert_eq!(command(typed, "--duration 101s"), says);
        }
        assert_eq!(
            command(&["tactus", "run", "--repeat", "2", "--quick"], "--repeat 5"),
            "tactus run --quick --repeat 5"
        );
        assert_eq!(command(&["tactus", "run"], "tactus explain smt"), "tactus explain smt");
    }
}
