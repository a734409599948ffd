//! The lines of an audit that are meant to be copied, on all recorded machines: each fixes the findings that it
//! claims to fix.

mod machines;

use tactus_audit::{Intent, Subject, audit, find};
use tactus_model::change::Target;
use tactus_model::facts::Facts;
use tactus_model::finding::{Action, Role};
use tactus_tune::plan::{Choice, Plan};
use tactus_tune::profile;

use machines::machines;

/// `--only` of `tactus tune apply --profile P --isolate CPUS --only IDS`.
fn option<'a>(line: &'a str, name: &str) -> &'a str {
    let mut words = line.split(' ').skip_while(|word| *word != name);
    words.nth(1).unwrap_or_else(|| panic!("{line} has no {name}"))
}

/// The plan that `tactus tune plan` makes of a copied line.
fn copied(facts: &Facts, role: Role, line: &str) -> Plan {
    let intent = Intent { isolated: Some(option(line, "--isolate").parse().unwrap()), ..Intent::default() };
    let only = option(line, "--only").split(',').map(str::to_owned).collect();
    let profile = profile::find(option(line, "--profile")).unwrap();
    Plan::new(&Subject::new(facts, role, &intent), profile, &Choice { only, ..Choice::default() })
}

/// A setting at run time. A boot parameter fixes checks beside those that ask for it.
fn is_tuning(action: &Action) -> bool {
    action.command.starts_with("sudo tactus tune apply ") && !action.command.contains(" --persist ")
}

#[test]
fn a_line_that_is_copied_from_an_audit_sets_all_that_it_is_said_to_fix() {
    let (mut lines, mut wrong) = (0, Vec::new());
    for (name, facts) in machines() {
        for role in [Role::Host, Role::Guest] {
            let intent = Intent::default();
            let subject = Subject::new(&facts, role, &intent);
            for action in audit(&subject).actions.iter().filter(|action| is_tuning(action)) {
                lines += 1;
                let plan = copied(&facts, role, &action.command);
                for id in &action.fixes {
                    let wanted = (find(id).unwrap().changes)(&subject);
                    for change in wanted.iter().filter(|change| !change.holds()) {
                        if matches!(change.target, Target::Kernel { .. }) {
                            continue;
                        }
                        let planned = plan.entries.iter().find(|step| step.change.target == change.target);
                        let then = planned.map(|step| step.change.then.as_str());
                        let same = then.is_some_and(|then| match &change.target {
                            // A bound of 1 us is as good as one of 3.
                            _ if id == "pm-qos" => true,
                            Target::File { form, .. } => form.same(then, &change.then),
                            _ => then == change.then,
                        });
                        if !same {
                            wrong.push(format!(
                                "{name}, {role}, {id}: {} {then:?}, wants {}",
                                change.target, change.then
                            ));
                        }
                    }
                }
            }
        }
    }
    assert!(lines > 12, "{lines}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
