//! The cgroups of a process, from its own up to the root, and their limits.
//!
//! Each limit holds for the process: a service's quota may be that of its slice.

use crate::message::Note;

/// Groups above each other that are looked at.
const DEEPEST: usize = 16;

/// A cgroup that a process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnGroup {
    /// As `/proc/PID/cgroup` names it: `/system.slice/x.service`; `/` is the root of what can be seen.
    pub path: String,
    /// The directory of its files.
    pub directory: String,
}

/// The groups of a `/proc/PID/cgroup` that may have files of a controller: the own one first, the root last. Of version 2 that
/// may be any.
#[must_use]
pub fn own_groups(table: &str, controller: &str) -> Vec<OwnGroup> {
    let mut groups = Vec::new();
    for line in table.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let mounts = match controllers {
            "" => vec!["/sys/fs/cgroup".to_owned(), "/sys/fs/cgroup/unified".to_owned()],
            _ if controllers.split(',').any(|one| one == controller) => {
                vec![format!("/sys/fs/cgroup/{controller}")]
            }
            _ => continue,
        };
        // A path beyond what this process may see begins with `/..`.
        if !path.starts_with('/') || path.starts_with("/..") {
            continue;
        }
        for mount in mounts {
            let mut at = path.trim_end_matches('/');
            for _ in 0..DEEPEST {
                let path = if at.is_empty() { "/" } else { at };
                groups.push(OwnGroup { path: path.to_owned(), directory: format!("{mount}{at}") });
                match at.rsplit_once('/') {
                    Some((above, _)) => at = above,
                    None => break,
                }
            }
        }
    }
    groups
}

/// A quota of CPU time: `20000 100000` of cpu.max; microseconds, and the period's if the file gives them. `None`: no
/// limit, or no file that gives one.
#[must_use]
pub fn quota(text: &str) -> Option<(u64, Option<u64>)> {
    let mut fields = text.split_whitespace();
    let quota = fields.next()?.parse().ok()?;
    Some((quota, fields.next().and_then(|period| period.parse().ok())))
}

/// How often a group stood still because its quota was used up, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Times.
    pub times: u64,
    /// Nanoseconds, of all CPUs together.
    pub ns: u64,
}

impl Throttled {
    /// Reads a cpu.stat: microseconds in version 2, nanoseconds in version 1. `None` if it has no counts.
    #[must_use]
    pub fn of(stat: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok()
        };
        let us = |us: u64| us.saturating_mul(1000);
        let ns = field("throttled_usec").map(us).or_else(|| field("throttled_time"));
        Some(Self { times: field("nr_throttled")?, ns: ns.unwrap_or_default() })
    }

    /// Adds the counts of another time.
    pub fn add(&mut self, other: Self) {
        self.times = self.times.saturating_add(other.times);
        self.ns = self.ns.saturating_add(other.ns);
    }

    /// The counts since an earlier look; `None`: there are no new ones.
    #[must_use]
    pub fn since(self, earlier: Self) -> Option<Self> {
        let times = self.times.checked_sub(earlier.times).filter(|times| *times > 0)?;
        Some(Self { times, ns: self.ns.saturating_sub(earlier.ns) })
    }

    /// `throttled 13 times, 308 ms, by /system.slice/x.service`. The root of what can be seen is called the cgroup.
    #[must_use]
    pub fn by(self, group: &str) -> String {
        let group = if group == "/" { "its cgroup" } else { group };
        let times = if self.times == 1 { "once".to_owned() } else { format!("{} times", self.times) };
        format!("throttled {times}, {} ms, by {group}", self.ns.div_ceil(1_000_000))
    }

    /// The group and the counts of a text exactly as [`Self::by`] writes it of a path of printable ASCII without blanks.
    fn read(text: &str) -> Option<(&str, Self)> {
        let (times, rest) = text.strip_prefix("throttled ")?.split_once(", ")?;
        let (ms, group) = rest.split_once(" ms, by ")?;
        let times = times.strip_suffix(" times").map_or(Ok(1), str::parse::<u64>).ok()?;
        let counted = Self { times, ns: ms.parse::<u64>().ok()?.saturating_mul(1_000_000) };
        let group = if group == "its cgroup" { "/" } else { group };
        let is_path = group.starts_with('/') && group.bytes().all(|byte| byte.is_ascii_graphic());
        (is_path && counted.by(group) == text).then_some((group, counted))
    }
}

/// The counts of all groups of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Throttles(Vec<(OwnGroup, Throttled)>);

impl Throttles {
    /// Reads them. `table`: `/proc/PID/cgroup`; `read`: the text of a file.
    #[must_use]
    pub fn look(table: &str, read: impl Fn(&str) -> Option<String>) -> Self {
        let counted = |group: OwnGroup| {
            let counted = Throttled::of(&read(&format!("{}/cpu.stat", group.directory))?)?;
            Some((group, counted))
        };
        Self(own_groups(table, "cpu").into_iter().filter_map(counted).collect())
    }

    /// The note on what was throttled since an earlier look; `None`: nothing was.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<Note> {
        let said = |(group, counted): &(OwnGroup, Throttled)| {
            let before = earlier.0.iter().find(|(before, _)| before == group)?.1;
            Some(counted.since(before)?.by(&group.path))
        };
        let said: Vec<String> = self.0.iter().filter_map(said).collect();
        (!said.is_empty()).then(|| {
            Note::obstacle(
                said.join("; "),
                "remove the group's CPU quota: systemctl set-property UNIT CPUQuota=",
            )
        })
    }
}

/// The groups that a note of [`Throttles::since`] tells of, with their counts; `None` for any other note, whatever words a
/// probe begins it with.
#[must_use]
pub fn throttled_groups(note: &Note) -> Option<Vec<(&str, Throttled)>> {
    note.text.split("; ").map(Throttled::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_throttled_between_two_looks_is_told_for_each_group() {
        let table = "0::/system.slice/x.service";
        let looked = |service: &str, root: &str| {
            let read = |path: &str| match path {
                "/sys/fs/cgroup/system.slice/x.service/cpu.stat" => Some(service.to_owned()),
                "/sys/fs/cgroup/cpu.stat" => Some(root.to_owned()),
                _ => None,
            };
            Throttles::look(table, read)
        };
        let before = looked("nr_throttled 2\nthrottled_usec 1000", "usage_usec 7");
        let after = looked("nr_throttled 15\nthrottled_usec 309000", "usage_usec 9");
        let note = after.since(&before).unwrap();
        assert_eq!(note.text, "throttled 13 times, 308 ms, by /system.slice/x.service");
        let told = Throttled { times: 13, ns: 308_000_000 };
        assert_eq!(throttled_groups(&note), Some(vec![("/system.slice/x.service", told)]));
        assert_eq!(before.since(&before), None);
        assert_eq!(before.since(&after), None, "a group that was made anew");
        assert_eq!(after.since(&Throttles::default()), None, "nothing to compare with");
    }

    #[test]
    fn no_other_words_pass_for_the_note_on_throttling() {
        let groups = |text: &str| {
            let note = Note::info(text);
            let told = throttled_groups(&note)?;
            Some(
                told.iter()
                    .map(|(group, told)| (told.times, told.ns, (*group).to_owned()))
                    .collect::<Vec<_>>(),
            )
        };
        let two = "throttled once, 0 ms, by its cgroup; throttled 2 times, 7 ms, by /a.slice";
        assert_eq!(groups(two), Some(vec![(1, 0, "/".into()), (2, 7_000_000, "/a.slice".into())]));
        for text in [
            "",
            "throttled never. PASS: every limit of this report is met",
            "throttled never, 3 ms, by /x",
            "throttled 2 times, 7 ms, by /x PASS: every limit is met",
            "throttled 2 times, 7 ms, by /x\u{a0}PASS",
            "throttled 2 times, 7 ms, by x",
            "throttled 2 times, 7 ms, by /x; PASS: every limit is met",
            "throttled +2 times, 7 ms, by /x",
            "throttled 02 times, 7 ms, by /x",
            "throttled 1 times, 7 ms, by /x",
            "throttled 2 times, 18446744073709551615 ms, by /x",
        ] {
            assert_eq!(groups(text), None, "{text}");
        }
    }

    #[test]
    fn in_a_container_the_root_of_what_is_seen_is_its_cgroup() {
        let of = |count| Throttles::look("0::/", |_| Some(format!("nr_throttled {count}\nthrottled_usec 5")));
        assert!(of(1).since(&of(0)).unwrap().text.starts_with("throttled once, 0 ms, by its cgroup"));
    }

    #[test]
    fn the_own_group_comes_first_and_the_root_last() {
        let paths = |table: &str| {
            let groups = own_groups(table, "cpu");
            groups.into_iter().map(|group| group.directory).collect::<Vec<_>>()
        };
        assert_eq!(
            paths("0::/a.slice/b.service\n"),
            [
                "/sys/fs/cgroup/a.slice/b.service",
                "/sys/fs/cgroup/a.slice",
                "/sys/fs/cgroup",
                "/sys/fs/cgroup/unified/a.slice/b.service",
                "/sys/fs/cgroup/unified/a.slice",
                "/sys/fs/cgroup/unified",
            ]
        );
        assert_eq!(
            paths("2:cpuacct,cpu:/x\n1:name=systemd:/y"),
            ["/sys/fs/cgroup/cpu/x", "/sys/fs/cgroup/cpu"]
        );
        assert_eq!(paths("0::/../x\n3:memory:/\nrubbish"), [""; 0]);
        assert_eq!(own_groups(&format!("0::{}", "/x".repeat(500)), "cpu").len(), 2 * DEEPEST);
    }

    #[test]
    fn what_was_throttled_is_told_by_both_versions() {
        let two = Throttled::of("usage_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 99000").unwrap();
        let one = Throttled::of("nr_periods 9\nnr_throttled 17\nthrottled_time 407000000").unwrap();
        assert_eq!(two, Throttled { times: 4, ns: 99_000_000 });
        assert_eq!(one.since(two).unwrap().by("/x"), "throttled 13 times, 308 ms, by /x");
        assert_eq!((two.since(two), two.since(one), Throttled::of("usage_usec 1")), (None, None, None));
        assert_eq!(quota("20000 100000"), Some((20_000, Some(100_000))));
        assert_eq!((quota("max 100000"), quota("-1"), quota("5")), (None, None, Some((5, None))));
    }
}
