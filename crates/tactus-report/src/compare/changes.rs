//! Other differences between two conditions, which may explain different results.

use std::collections::BTreeSet;

use tactus_model::bundle::Contents;
use tactus_model::document::ChangeEntry;
use tactus_model::facts::Facts;
use tactus_model::isolation;

use super::condition::Condition;

/// A reading of the whole run.
type OfRun = fn(&Contents) -> Option<String>;
/// A reading of an environment.
type OfPlace = fn(&Facts) -> Option<String>;

const OF_RUNS: [(&str, OfRun); 7] = [
    ("machine", |of| Some(of.manifest.machine.name.clone())),
    ("processor", |of| Some(of.manifest.machine.processor.clone())),
    ("CPUs", |of| Some(of.manifest.machine.cpus.clone())),
    ("kernel", |of| Some(of.manifest.machine.kernel.clone())),
    ("system", |of| Some(of.manifest.machine.system.clone())),
    ("tactus", |of| Some(of.manifest.tactus.clone())),
    ("state of the machine", |of| {
        let states: BTreeSet<&str> =
            of.manifest.sessions.iter().filter_map(|own| Some(own.state.as_ref()?.name.as_str())).collect();
        (!states.is_empty()).then(|| states.into_iter().collect::<Vec<_>>().join(", "))
    }),
];

const OF_PLACES: [(&str, OfPlace); 11] = [
    ("kernel", |of| of.text("uname:release").map(str::to_owned)),
    ("kernel build", |of| of.text("uname:version").map(str::to_owned)),
    ("command line", |of| of.text("/proc/cmdline").map(str::to_owned)),
    ("microcode", |of| of.field("/proc/cpuinfo", "microcode", ':').map(str::to_owned)),
    ("clock source", |of| {
        of.text("/sys/devices/system/clocksource/clocksource0/current_clocksource").map(str::to_owned)
    }),
    ("governor", |of| of.text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").map(str::to_owned)),
    ("idle driver", |of| of.text("/sys/devices/system/cpu/cpuidle/current_driver").map(str::to_owned)),
    ("isolated CPUs", isolation::told),
    ("CPUs without tick", |of| of.text("/sys/devices/system/cpu/nohz_full").map(str::to_owned)),
    ("hyper-threading", |of| of.text("/sys/devices/system/cpu/smt/active").map(str::to_owned)),
    ("profile", |of| of.text("/etc/tuned/active_profile").map(str::to_owned)),
];

/// The differences.
pub fn changes(base: &Condition, with: &Condition) -> Vec<ChangeEntry> {
    let mut found = Vec::new();
    let mut add = |what: &str, environment: Option<&str>, of: &dyn Fn(&Contents) -> Option<String>| {
        let values = |condition: &Condition| -> Vec<String> {
            let known: BTreeSet<String> =
                condition.bundles().iter().filter_map(of).filter(|value| !value.is_empty()).collect();
            known.into_iter().collect()
        };
        let (base, now) = (values(base), values(with));
        if base != now {
            found.push(ChangeEntry {
                with: with.name.clone(),
                what: what.to_owned(),
                environment: environment.map(str::to_owned),
                base,
                now,
            });
        }
    };
    for (what, of) in OF_RUNS {
        add(what, None, &of);
    }
    // An environment that one of them lacks differs in everything, which its scenarios say.
    let places = |condition: &Condition| -> BTreeSet<String> {
        condition.bundles().iter().flat_map(|contents| contents.facts.keys().cloned()).collect()
    };
    for place in places(base).intersection(&places(with)) {
        for (what, of) in OF_PLACES {
            add(what, Some(place), &|contents| of(contents.facts.get(place)?));
        }
        add("findings", Some(place), &|contents| {
            let ids: BTreeSet<&str> =
                contents.audits.get(place)?.found().map(|own| own.id.as_str()).collect();
            Some(if ids.is_empty() { "none".into() } else { ids.into_iter().collect::<Vec<_>>().join(", ") })
        });
    }
    // The host repeats the machine's facts.
    let told: Vec<(String, Vec<String>, Vec<String>)> = found
        .iter()
        .filter(|change| change.environment.is_none())
        .map(|change| (change.what.clone(), change.base.clone(), change.now.clone()))
        .collect();
    found.retain(|change| {
        change.environment.is_none()
            || !told
                .iter()
                .any(|(what, base, now)| (what, base, now) == (&change.what, &change.base, &change.now))
    });
    found.iter_mut().for_each(sharpen);
    found
}

/// Of two lists of findings what one has and the other has not.
fn sharpen(change: &mut ChangeEntry) {
    let ([base], [now]) = (change.base.as_slice(), change.now.as_slice()) else { return };
    if change.what != "findings" {
        return;
    }
    let ids = |text: &str| text.split(", ").map(str::to_owned).collect::<BTreeSet<String>>();
    let (ours, theirs) = (ids(base), ids(now));
    let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
        let only: Vec<String> = one.difference(other).filter(|id| *id != "none").cloned().collect();
        if only.is_empty() { Vec::new() } else { vec![only.join(", ")] }
    };
    (change.base, change.now) = (only(&ours, &theirs), only(&theirs, &ours));
}
