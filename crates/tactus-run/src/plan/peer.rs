//! An activity and the environment at its other end.

use tactus_model::catalogue::{Entry, PeerKey};
use tactus_model::plan::{Activity, Plan};

use super::{PlanError, Source};

/// A peer is named by the key that the activity's word takes, and is an environment of the plan. It is then up in
/// the same scenario.
pub(super) fn check(plan: &Plan, activity: &Activity, path: &str, source: &Source) -> Result<(), PlanError> {
    match word(activity) {
        Some(word) => taken(plan, word, activity, path, source),
        None => Ok(()),
    }
}

/// The entry of what an activity does.
fn word(activity: &Activity) -> Option<&'static Entry> {
    match (&activity.measure, &activity.load, &activity.fault) {
        (Some(measure), ..) => Some(measure.entry()),
        (_, Some(load), _) => Some(load.entry()),
        (.., Some(fault)) => Some(fault.entry()),
        _ => None,
    }
}

fn taken(
    plan: &Plan,
    word: &Entry,
    activity: &Activity,
    path: &str,
    source: &Source,
) -> Result<(), PlanError> {
    let said = [("to", PeerKey::To, &activity.to), ("from", PeerKey::From, &activity.from)];
    for (key, kind, name) in said {
        let Some(name) = name else { continue };
        let path = format!("{path}.{key}");
        if word.peer != Some(kind) {
            let hint = match word.peer {
                None => format!("leave it out; `tactus explain {}` lists the keys", word.name),
                Some(PeerKey::To) => "name the other environment with `to`".to_owned(),
                Some(PeerKey::From) => "name the other environment with `from`".to_owned(),
            };
            return Err(source.error(&path, format!("`{}` has no key `{key}`", word.name), hint));
        }
        if !plan.environment.contains_key(name) {
            return Err(source.undefined(plan, &path, name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::Family;
    use tactus_model::catalogue::Load;
    use tactus_model::catalogue::load::Cpu;
    use tactus_model::plan::Environment;

    use super::*;

    fn complaint(peer: Option<PeerKey>, to: Option<&str>, from: Option<&str>) -> Option<(String, String)> {
        let mut plan = Plan::default();
        plan.environment.insert("guest-2".into(), Environment::default());
        let (parameters, items) = (&[][..], &[][..]);
        let word = Entry {
            name: "sender",
            family: Family::Load,
            summary: "",
            text: "",
            parameters,
            counts: None,
            items,
            peer,
        };
        let activity = Activity {
            load: Some(Load::Cpu(Cpu::default())),
            to: to.map(str::to_owned),
            from: from.map(str::to_owned),
            ..Activity::default()
        };
        let source = Source::new("plan.toml", "");
        let error = taken(&plan, &word, &activity, "scenario[0].activity[0]", &source).err()?;
        Some((error.message, error.hint.unwrap_or_default()))
    }

    #[test]
    fn a_peer_is_named_by_the_key_that_the_word_takes() {
        assert_eq!(complaint(Some(PeerKey::To), Some("guest-2"), None), None);
        assert_eq!(complaint(Some(PeerKey::From), None, Some("guest-2")), None);
        assert_eq!(
            complaint(Some(PeerKey::To), None, None),
            None,
            "without a peer it is for its own environment"
        );
        let (message, hint) = complaint(Some(PeerKey::To), None, Some("guest-2")).unwrap();
        assert!(message.contains("`sender` has no key `from`") && hint.contains("`to`"), "{message}; {hint}");
        let (message, hint) = complaint(None, Some("guest-2"), None).unwrap();
        assert!(
            message.contains("`sender` has no key `to`") && hint.contains("tactus explain sender"),
            "{hint}"
        );
    }

    #[test]
    fn a_peer_is_an_environment_of_the_plan() {
        let (message, hint) = complaint(Some(PeerKey::To), Some("guest-3"), None).unwrap();
        assert!(
            message.contains("`guest-3` is not defined") && hint.contains("guest-2"),
            "{message}; {hint}"
        );
    }
}
