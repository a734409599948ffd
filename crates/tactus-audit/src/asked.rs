//! The requests of a boot, and their places: the command line as written, the files that make the next one, and the
//! active profile of TuneD. Only the kernel can say whether a request is in effect.

use tactus_model::CpuSet;
use tactus_model::cmdline::{Cmdline, Parameter};
use tactus_model::facts::{Facts, Reading};
use tactus_model::isolation::last_cpu;

use super::settable;

/// The file that TuneD writes for the boot loader.
const BOOTCMDLINE: &str = "/etc/tuned/bootcmdline";
const ACTIVE: &str = "/etc/tuned/active_profile";
const GRUB: &str = "/etc/default/grub";
const GRUB_DROP_INS: &str = "/etc/default/grub.d/";
/// Files whose whole text is a command line: systemd's kernel-install, Raspberry Pi OS, Debian for the Raspberry Pi.
const LINES: [&str; 3] = ["/etc/kernel/cmdline", "/boot/firmware/cmdline.txt", "/boot/cmdline.txt"];
const ENTRIES: &str = "/boot/loader/entries/";

/// The kernel's own line on parameters that it does not know (since Linux 5.14).
pub const UNKNOWN: &str = "dmesg:unknown-parameters";

/// A place that asks for parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// As a reader finds it: `/etc/default/grub`, `TuneD's profile realtime`.
    pub name: String,
    /// The file that was read.
    pub file: String,
    /// The parameters that it asks for and that matter to real-time work.
    pub line: Vec<Parameter>,
}

/// Places beside the command line that ask for parameters of the next boot.
pub fn places(facts: &Facts) -> Vec<Place> {
    let mut places = Vec::new();
    let mut keep = |name: String, file: &str, text: &str| {
        let asked = Cmdline::parse(text);
        let line: Vec<Parameter> =
            asked.parameters().iter().filter(|one| matters(&one.name)).cloned().collect();
        if !line.is_empty() {
            places.push(Place { name, file: file.to_owned(), line });
        }
    };
    if let Some((profile, text)) = profiles(facts).zip(facts.text(BOOTCMDLINE)) {
        let asked = assigned(text, &["TUNED_BOOT_CMDLINE"]);
        keep(format!("TuneD's profile {profile}"), BOOTCMDLINE, &asked);
    }
    // GRUB's files are read one after the other, and a later one can extend the variables of an earlier one.
    let files = [GRUB].into_iter().chain(named(facts, GRUB_DROP_INS));
    let (mut all, mut last) = (String::new(), GRUB);
    for (file, text) in files.filter_map(|file| Some((file, facts.text(file)?))) {
        (all, last) = (all + text + "\n", file);
    }
    keep(last.to_owned(), last, &assigned(&all, &["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"]));
    for file in LINES {
        if let Some(text) = facts.text(file) {
            keep(file.to_owned(), file, text);
        }
    }
    // The entry of this kernel: another kernel may be told other things.
    let release = facts.text("uname:release").filter(|release| !release.is_empty());
    let entry = |file: &&str| {
        facts.text(file).is_some_and(|text| text.lines().any(|line| word(line, "version") == release))
    };
    if let Some(file) = named(facts, ENTRIES).find(entry).filter(|_| release.is_some()) {
        let text = facts.text(file).unwrap_or_default();
        let options: Vec<&str> = text.lines().filter_map(|line| word(line, "options")).collect();
        keep(file.to_owned(), file, &options.join(" "));
    }
    places
}

/// The rest of a line that begins with a word.
fn word<'a>(line: &'a str, first: &str) -> Option<&'a str> {
    let rest = line.trim().strip_prefix(first)?;
    rest.starts_with([' ', '\t']).then(|| rest.trim())
}

fn named<'a>(facts: &'a Facts, directory: &'a str) -> impl Iterator<Item = &'a str> {
    facts.under(directory).map(|(name, _)| name)
}

/// Whether a parameter is one that real-time work is about.
fn matters(name: &str) -> bool {
    settable::kernel_parameters().any(|known| same(known, name))
}

/// Whether two names are the same to the kernel.
fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.replace('-', "_") == other.replace('-', "_")
}

/// The values of these variables after a shell's assignments. A value that only a shell can work out is left out.
fn assigned(text: &str, variables: &[&str]) -> String {
    let mut values = vec![String::new(); variables.len()];
    for line in text.lines() {
        let Some((name, value)) = line.trim().split_once('=') else { continue };
        let name = name.trim_start_matches("export ").trim();
        let Some(at) = variables.iter().position(|variable| *variable == name) else { continue };
        let value = value.trim();
        let value = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].split(quote).next().unwrap_or_default(),
            _ => value.split_whitespace().next().unwrap_or_default(),
        };
        let own = [format!("${name}"), format!("${{{name}}}")];
        let mut words = Vec::new();
        for word in value.split_whitespace() {
            match own.iter().any(|own| own == word) {
                true => words.push(values[at].clone()),
                false if word.contains(['$', '`']) => {}
                false => words.push(word.to_owned()),
            }
        }
        values[at] = words.join(" ");
    }
    values.join(" ")
}

/// The active profile of TuneD, as its file names it.
fn profiles(facts: &Facts) -> Option<&str> {
    facts.text(ACTIVE).filter(|profile| !profile.is_empty())
}

/// The CPUs that the active profile of TuneD is to isolate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuned {
    /// The profile.
    pub profile: String,
    /// The file with its variables.
    pub file: String,
    /// `isolated_cores=` as it is written.
    pub value: String,
    /// The same CPUs on this machine.
    pub cpus: CpuSet,
}

/// Reads it, if the profile's variables name CPUs. Values that TuneD computes (`${f:calc_isolated_cores:1}`) are
/// unknown here.
pub fn tuned(facts: &Facts, online: &CpuSet) -> Option<Tuned> {
    profiles(facts)?.split_whitespace().find_map(|profile| {
        let file = format!("/etc/tuned/{profile}-variables.conf");
        let mut values = facts.text(&file)?.lines().filter_map(|line| {
            let (key, value) = line.trim().split_once('=')?;
            (key.trim() == "isolated_cores").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        });
        let value = values.next_back()?;
        let cpus = excluding(&value, last_cpu(facts))?.and(online);
        (!cpus.is_empty()).then(|| Tuned { profile: profile.to_owned(), file, value, cpus })
    })
}

/// A list in which `^` takes CPUs out again, as TuneD and libvirt write it.
fn excluding(list: &str, last: u32) -> Option<CpuSet> {
    let (out, within): (Vec<&str>, Vec<&str>) =
        list.split(',').map(str::trim).partition(|part| part.starts_with('^'));
    let out: Vec<&str> = out.iter().map(|part| &part[1..]).collect();
    let read = |parts: &[&str]| CpuSet::of_parameter(&parts.join(","), last).ok();
    Some(read(&within)?.minus(&read(&out)?))
}

/// A parameter that the kernel was told and does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misspelt {
    /// As it was told.
    pub told: Parameter,
    /// The parameter that was probably meant.
    pub meant: &'static str,
}

/// The parameters that the kernel's log calls unknown; `None` where the log cannot tell.
pub fn unknown(facts: &Facts) -> Option<Vec<Parameter>> {
    let Reading::Text(text) = facts.0.get(UNKNOWN)? else { return None };
    if text.trim().is_empty() {
        // Without a line it knows them all; if the line can still be there, and if this kernel writes one.
        let since = super::Kernel::of(facts).since(5, 14);
        return (since && facts.text("dmesg:start") == Some("whole")).then(Vec::new);
    }
    let all = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once('"')?;
        let (told, _) = rest.rsplit_once('"')?;
        Some(Cmdline::parse(told).parameters().to_vec())
    });
    Some(all.flatten().collect())
}

/// Parameters of the command line whose names are not those that were meant.
pub fn misspelt(facts: &Facts) -> Vec<Misspelt> {
    let unknown = unknown(facts);
    let told = Cmdline::of(facts);
    let of = |one: &Parameter| {
        // The log says nothing of parameters with a dot: they may be those of a module that is loaded later.
        let known = match &unknown {
            Some(all) if !one.name.contains('.') => !all.iter().any(|other| same(&other.name, &one.name)),
            _ => false,
        };
        if known {
            return None;
        }
        let said = unknown.is_some() && !one.name.contains('.');
        Some(Misspelt { told: one.clone(), meant: meant(&one.name, said)? })
    };
    told.parameters().iter().filter_map(of).collect()
}

/// The parameter that was meant. Without the kernel's word only a long name that differs by one letter tells: `nosmp` and
/// `nosmt` are both known to it.
fn meant(name: &str, said: bool) -> Option<&'static str> {
    // Anybody may have written the name, and a comparison takes time with the square of its length.
    if name.len() > 40 || settable::kernel_parameters().any(|known| same(known, name)) {
        return None;
    }
    let name = name.replace('-', "_").to_ascii_lowercase();
    let near = settable::kernel_parameters().filter_map(|known| {
        let known_name = known.replace('-', "_");
        let apart = strsim::osa_distance(&name, &known_name);
        let most = match (said, known_name.len()) {
            (true, 0..5) | (false, 0..8) => return None,
            (true, 5..8) | (false, _) => 1,
            (true, _) => 2,
        };
        (apart <= most).then_some((apart, known))
    });
    near.min_by_key(|(apart, _)| *apart).map(|(_, known)| known)
}

/// CPUs that somebody wants to be isolated where none is: the active profile of TuneD, `isolcpus=` on the command line,
/// misspelt or refused, and what asks for the next boot.
pub fn isolation(facts: &Facts, online: &CpuSet) -> Option<CpuSet> {
    let cpus = |value: &str| {
        let list = value.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '_' || c == ',');
        let cpus = CpuSet::of_parameter(list, last_cpu(facts)).ok()?.and(online);
        // Somebody must keep house.
        (!cpus.is_empty() && cpus != *online).then_some(cpus)
    };
    let told = Cmdline::of(facts);
    let told = told.get("isolcpus").and_then(cpus);
    let meant = || {
        let mut all = misspelt(facts).into_iter();
        all.find_map(|one| cpus(one.told.value.as_deref().filter(|_| one.meant == "isolcpus")?))
    };
    let tuned = || tuned(facts, online).map(|tuned| tuned.cpus).filter(|cpus| cpus != online);
    let later = || {
        let lines = places(facts).into_iter().flat_map(|place| place.line);
        lines.filter(|one| one.name == "isolcpus").find_map(|one| cpus(one.value.as_deref()?))
    };
    told.or_else(meant).or_else(tuned).or_else(later)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::intel;

    #[test]
    fn a_shells_assignments_are_gone_through_in_order() {
        let grub = "GRUB_CMDLINE_LINUX=\"a b\" # why\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX c `x` $y\"\n\
                    #GRUB_CMDLINE_LINUX=no\nGRUB_CMDLINE_LINUX_DEFAULT='${GRUB_CMDLINE_LINUX_DEFAULT} d'\n";
        let all = assigned(grub, &["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"]);
        assert_eq!(all.split_whitespace().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        assert_eq!(assigned("X=a\nX=b", &["X"]), "b");
    }

    #[test]
    fn the_entry_of_this_kernel_says_what_it_will_be_told() {
        let system = intel(&[
            ("uname:release", "6.12.0-55.el10"),
            ("/boot/loader/entries/a-6.12.0-54.el10.conf", "version 6.12.0-54.el10\noptions isolcpus=1\n"),
            (
                "/boot/loader/entries/a-6.12.0-55.el10.conf",
                "version 6.12.0-55.el10\noptions root=x ro isolcpus=2-3 $tuned\n",
            ),
        ]);
        let places = places(&system.facts);
        assert_eq!(places.len(), 1);
        assert_eq!(places[0].file, "/boot/loader/entries/a-6.12.0-55.el10.conf");
        let words: Vec<_> =
            places[0].line.iter().map(|one| (one.name.as_str(), one.value.as_deref())).collect();
        assert_eq!(words, [("isolcpus", Some("2-3"))]);
    }

    #[test]
    fn what_was_meant_is_said_only_where_it_is_plain() {
        assert_eq!(meant("isolcpu", false), Some("isolcpus"));
        assert_eq!(meant("rcu_nocb", false), Some("rcu_nocbs"));
        assert_eq!(meant("rcu-nocbs", true), None, "to the kernel it is the same");
        assert_eq!(meant("nohz_ful", true), Some("nohz_full"));
        for other in
            ["nosmp", "mem", "root", "ro", "quiet", "splash", "nosmap", "audit_backlog_limit", "hugepages"]
        {
            assert_eq!(meant(other, false), None, "{other}");
        }
        assert_eq!(meant("intel_idle.max_cstates", false), Some("intel_idle.max_cstate"));
    }

    #[test]
    fn a_list_may_take_cpus_out_again() {
        let read = |list| excluding(list, 15).map(|cpus| cpus.to_string());
        assert_eq!(read("1-4,^2"), Some("1,3,4".into()));
        assert_eq!(read("2-N"), Some("2-15".into()));
        assert_eq!(read("${f:calc_isolated_cores:1}"), None);
    }
}
