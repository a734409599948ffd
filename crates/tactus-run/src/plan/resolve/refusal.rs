//! The limits of an environment on any machine: a plan that exceeds them is wrong.

use tactus_model::message::What;
use tactus_model::plan;

use super::Resolver;
use crate::plan::PlanError;
use crate::plan::resolved::ResolvedScenario;

const HINT: &str = "`tactus explain` lists what each kind of environment can do; use another kind";

impl Resolver<'_> {
    /// Refuses an activity that its environment cannot do. (Who may be at the other end is said by the paths.)
    pub(super) fn can(
        &self,
        path: &str,
        number: u32,
        activity: &plan::Activity,
        what: &What,
        scenario: &ResolvedScenario,
    ) -> Result<(), PlanError> {
        let Some(kind) = self.environments.get(&activity.environment).map(|environment| environment.kind)
        else {
            return Ok(());
        };
        let asked = || asked_of_a_system(scenario).filter(|_| !kind.has_system());
        match kind.refuses(what).or_else(asked) {
            None => Ok(()),
            Some(why) => {
                let words = format!("`{}` cannot do this: {why}", activity.environment);
                Err(self.source.error(&format!("{path}.activity[{number}]"), words, HINT))
            }
        }
    }
}

/// The feature of an operating system that a scenario needs where it measures.
fn asked_of_a_system(scenario: &ResolvedScenario) -> Option<String> {
    let asked = [
        (!scenario.settings.is_empty(), "`settings` need an operating system"),
        (scenario.cache_misses == Some(true), "`cache_misses` need an operating system"),
        (scenario.blame_above.is_some(), "`blame_above` needs an operating system"),
        (scenario.lock_in.is_some(), "a separation needs operating systems on both sides"),
    ];
    asked.into_iter().find(|(is, _)| *is).map(|(_, why)| format!("{why}, and this kind has none"))
}

#[cfg(test)]
mod tests {
    use tactus_model::topology::Topology;
    use tactus_system::Memory;

    use crate::plan::{Choices, Source, check, parse, resolve};

    /// Why a plan with a bare guest is refused; `None` if it is accepted.
    fn refused(scenario: &str) -> Option<String> {
        let text = format!(
            "name = \"p\"\n[environment.floor]\nkind = \"bare\"\n[environment.host]\nkind = \"host\"\n[[scenario]]\nname = \"s\"\n{scenario}"
        );
        let (source, system) = (Source::new("plan.toml", &*text), Memory::new());
        let plan = parse(&source).unwrap();
        check(&plan, &source, &system).unwrap();
        let mut facts = tactus_model::facts::Facts::default();
        facts.keep("/sys/devices/system/cpu/online", "0-1");
        facts.keep("sched:affinity", "0-1");
        let resolved = resolve(&plan, &source, &Choices::default(), &Topology::of(&facts), &system);
        resolved.err().map(|error| error.to_string())
    }

    #[test]
    fn activities_that_need_an_operating_system_are_refused_without_one() {
        assert_eq!(refused("environment = \"floor\"\n"), None);
        assert_eq!(
            refused(
                "environment = \"floor\"\nfault = [{ kind = \"hold-vcpu\", length = \"1ms\", every = \"100ms\" }]\n"
            ),
            None,
            "it is held from outside"
        );
        for (scenario, word) in [
            ("environment = \"floor\"\nmeasurement = \"os\"\n", "`os`"),
            ("environment = \"floor\"\nload = [\"cpu\"]\n", "`cpu`"),
            ("environment = \"host\"\nload = [{ kind = \"cpu\", in = \"floor\" }]\n", "`cpu`"),
            ("environment = \"floor\"\nsettings = [\"thp\"]\n", "`settings`"),
            ("environment = \"floor\"\ncache_misses = true\n", "`cache_misses`"),
        ] {
            let why = refused(scenario).unwrap_or_else(|| panic!("accepted: {scenario}"));
            assert!(why.contains("`floor` cannot do this") && why.contains(word), "{why}");
        }
    }
}
