//! Files of the cgroup that a container sees as its own.

use tactus_model::facts::Reading;

use crate::{Judgement, Subject};

/// A file of the own cgroup: its path and text. `file` has a name in version 2 and one in version 1;
/// `controller` is that of version 1. `None` where neither is there.
///
/// # Errors
/// Unreadable, where it is there and may not be read.
pub fn own<'a>(
    subject: &Subject<'a>,
    controller: &str,
    v2: &str,
    v1: &str,
) -> Result<Option<(String, &'a str)>, Judgement> {
    for path in paths(subject, controller, v2, v1) {
        match subject.facts.0.get(&path) {
            Some(Reading::Text(text) | Reading::Cut(text)) => return Ok(Some((path, text.trim()))),
            Some(Reading::Unreadable(reason)) => {
                return Err(
                    Judgement::unreadable(format!("{path} could not be read: {reason}")).read(path, reason)
                );
            }
            Some(Reading::Absent) | None => {}
        }
    }
    Ok(None)
}

/// Where the file may be: below the path of the container's cgroup, and at the root of the mount. The root is the
/// container's cgroup if the runtime mounts only that but leaves the host's paths visible.
fn paths(subject: &Subject<'_>, controller: &str, v2: &str, v1: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for line in subject.facts.text("/proc/self/cgroup").unwrap_or_default().lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let path = path.trim_end_matches('/');
        if controllers.is_empty() && !v2.is_empty() {
            for mount in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
                paths.extend([format!("{mount}{path}/{v2}"), format!("{mount}/{v2}")]);
            }
        } else if controllers.split(',').any(|one| one == controller) && !v1.is_empty() {
            let mount = format!("/sys/fs/cgroup/{controller}");
            paths.extend([format!("{mount}{path}/{v1}"), format!("{mount}/{v1}")]);
        }
    }
    paths
}

/// Whether the own cgroup is one of version 1 with this controller.
pub fn is_v1(subject: &Subject<'_>, controller: &str) -> bool {
    subject.facts.text("/proc/self/cgroup").unwrap_or_default().lines().any(|line| {
        line.split(':').nth(1).is_some_and(|controllers| controllers.split(',').any(|one| one == controller))
    })
}
