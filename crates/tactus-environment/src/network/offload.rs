//! Settings of the interfaces of a path: GRO, GSO, and the CPUs that handle received packets. Interfaces and settings
//! end with their namespaces. Pure.

use tactus_model::plan::{NetworkPath, PathKind};

use super::steps::{At, END, TAP, WIRE};

/// Writes the CPUs of every receive queue of an interface. sysfs shows the interfaces of the namespace in which it was
/// mounted: it is mounted for this alone.
const STEER: &str = "set -e
mount -t sysfs sysfs /sys
for queue in /sys/class/net/$1/queues/rx-*/rps_cpus; do echo $2 >$queue; done";

/// The commands, and where each is run.
pub fn settings(path: &NetworkPath) -> Vec<(At, Vec<String>)> {
    let mut all = Vec::new();
    for (at, interface) in interfaces(path.kind) {
        for (feature, wanted) in [("gro", path.gro), ("gso", path.gso)] {
            let Some(wanted) = wanted else { continue };
            let value = if wanted { "on" } else { "off" };
            all.push((*at, ["ethtool", "-K", interface, feature, value].map(str::to_owned).to_vec()));
        }
        if let Some(cpus) = &path.rps {
            let mask = cpus.mask(1);
            let words = ["unshare", "--mount", "--", "sh", "-c", STEER, "sh", interface, &mask];
            all.push((*at, words.map(str::to_owned).to_vec()));
        }
    }
    all
}

/// The interfaces that packets come by.
const fn interfaces(kind: PathKind) -> &'static [(At, &'static str)] {
    match kind {
        PathKind::Loopback | PathKind::Nic => &[],
        PathKind::Veth => &[(At::Near, END), (At::Far, END)],
        PathKind::Bridge => &[(At::Machine, WIRE), (At::Machine, "port"), (At::Near, END), (At::Far, END)],
        PathKind::Macvlan => &[(At::Machine, WIRE), (At::Near, END), (At::Far, END)],
        PathKind::Macvtap | PathKind::Tap => &[(At::Near, WIRE), (At::Near, TAP), (At::Far, END)],
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::{Holders, steps};
    use super::*;

    fn path(kind: PathKind) -> NetworkPath {
        let rps = Some("0-1,33".parse().unwrap());
        NetworkPath {
            kind,
            mtu: None,
            device: None,
            nics: None,
            gro: Some(false),
            gso: Some(true),
            rps,
            irq: None,
        }
    }

    #[test]
    fn what_is_set_is_set_on_every_interface_that_the_path_makes_and_on_no_other() {
        for kind in [PathKind::Veth, PathKind::Bridge, PathKind::Macvlan, PathKind::Macvtap, PathKind::Tap] {
            let made = steps(&path(kind), Holders { near: 1, far: 2 });
            let made: Vec<String> = made.into_iter().map(|(_, words)| words.join(" ") + " ").collect();
            for (at, interface) in interfaces(kind) {
                let named = made.iter().any(|step| step.contains(&format!(" {interface} ")));
                assert!(named && *at != At::Here, "{kind}: {interface}");
            }
        }
        assert_eq!(settings(&path(PathKind::Nic)), []);
        assert_eq!(settings(&path(PathKind::Loopback)), []);
    }

    #[test]
    fn features_are_said_one_by_one_so_that_one_that_cannot_be_set_is_named() {
        let said: Vec<String> =
            settings(&path(PathKind::Veth)).iter().map(|(_, words)| words.join(" ")).collect();
        assert_eq!(said.len(), 6);
        assert_eq!(said[..2], ["ethtool -K eth0 gro off", "ethtool -K eth0 gso on"]);
        assert!(said[2].ends_with("sh eth0 2,00000003"), "{}", said[2]);
        let plain = NetworkPath { gro: None, gso: None, rps: None, ..path(PathKind::Veth) };
        assert_eq!(settings(&plain), []);
    }
}
