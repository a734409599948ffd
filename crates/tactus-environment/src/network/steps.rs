//! The steps to make a path. Pure.

use std::net::Ipv4Addr;

use tactus_model::plan::{NetworkPath, PathKind};

/// The address of the near end: of those that RFC 2544 keeps for measuring networks. Nothing else is where it is used.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The address of the far end.
pub const FAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The interface of each end, as it is seen there.
pub const END: &str = "eth0";
/// The host's side of a guest's device.
pub const TAP: &str = "tap0";
/// The address of a guest's device.
pub const MAC: &str = "52:54:00:12:34:56";
/// The end of the cable in the machine's namespace.
pub const WIRE: &str = "wire";

/// Where a command is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Where tactus runs.
    Here,
    /// In the namespace of the near end.
    Near,
    /// In that of the far end.
    Far,
    /// In that of the machine which the near end is on.
    Machine,
}

/// The processes that hold the namespaces.
#[derive(Clone, Copy, Debug)]
pub struct Holders {
    /// See [`At::Near`].
    pub near: u32,
    /// See [`At::Far`].
    pub far: u32,
}

/// Whether the device below the near end (a bridge, the parent of a macvlan) has a separate namespace.
pub const fn has_machine(kind: PathKind) -> bool {
    matches!(kind, PathKind::Bridge | PathKind::Macvlan)
}

/// The commands, and where each is run, in this order.
pub fn steps(path: &NetworkPath, holders: Holders) -> Vec<(At, Vec<String>)> {
    let (near, far, mtu) = (holders.near, holders.far, path.mtu());
    let mut steps = Vec::new();
    let mut ip = |at: At, words: String| {
        let words = std::iter::once("ip").chain(words.split(' ')).map(str::to_owned).collect();
        steps.push((at, words));
    };
    let veth = |name: &str, holder: u32| {
        format!("link add {name} mtu {mtu} type veth peer name {END} mtu {mtu} netns {holder}")
    };
    let mut ends = [END, END];
    match path.kind {
        PathKind::Loopback => return steps,
        PathKind::Tap => {
            // QEMU runs in the namespace of the near end, and the guest gives its device the address itself.
            ip(At::Near, format!("tuntap add dev {TAP} mode tap"));
            ip(At::Near, veth(WIRE, far));
            ip(At::Near, format!("link add bridge mtu {mtu} type bridge"));
            for port in [WIRE, TAP] {
                ip(At::Near, format!("link set {port} master bridge up"));
            }
            ip(At::Near, "link set bridge up".into());
        }
        PathKind::Macvtap => {
            ip(At::Near, veth(WIRE, far));
            ip(At::Near, format!("link set {WIRE} up"));
            // Frames for another address than its own do not reach it.
            let link = format!("link add link {WIRE} name {TAP} address {MAC} mtu {mtu}");
            ip(At::Near, link + " type macvtap mode bridge");
            ip(At::Near, format!("link set {TAP} up"));
        }
        PathKind::Veth => ip(At::Near, veth(END, far)),
        PathKind::Bridge => {
            ip(At::Machine, veth(WIRE, far));
            ip(At::Machine, veth("port", near));
            ip(At::Machine, format!("link add bridge mtu {mtu} type bridge"));
            for port in [WIRE, "port"] {
                ip(At::Machine, format!("link set {port} master bridge up"));
            }
            ip(At::Machine, "link set bridge up".into());
        }
        PathKind::Macvlan => {
            ip(At::Machine, veth(WIRE, far));
            ip(At::Machine, format!("link set {WIRE} up"));
            ip(
                At::Machine,
                format!("link add link {WIRE} name {END} mtu {mtu} netns {near} type macvlan mode bridge"),
            );
        }
        PathKind::Nic => {
            if let Some([first, second]) = &path.nics {
                ends = [first, second];
            }
            for (end, holder) in ends.into_iter().zip([near, far]) {
                ip(At::Here, format!("link set dev {end} netns {holder}"));
            }
        }
    }
    for ((at, address), end) in [(At::Near, NEAR), (At::Far, FAR)].into_iter().zip(ends) {
        if at == At::Near && path.kind.is_for_guests() {
            continue;
        }
        ip(at, format!("address add {address}/30 dev {end}"));
        ip(at, format!("link set {end} up"));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: PathKind, nics: Option<[&str; 2]>) -> Vec<String> {
        let nics = nics.map(|nics| nics.map(str::to_owned));
        let path =
            NetworkPath { kind, mtu: None, device: None, nics, gro: None, gso: None, rps: None, irq: None };
        let steps = steps(&path, Holders { near: 11, far: 22 });
        steps.iter().map(|(at, words)| format!("{at:?}: {}", words.join(" "))).collect()
    }

    #[test]
    fn a_cable_has_an_end_and_an_address_in_each_namespace() {
        assert_eq!(
            said(PathKind::Veth, None),
            [
                "Near: ip link add eth0 mtu 1500 type veth peer name eth0 mtu 1500 netns 22",
                "Near: ip address add 198.18.0.1/30 dev eth0",
                "Near: ip link set eth0 up",
                "Far: ip address add 198.18.0.2/30 dev eth0",
                "Far: ip link set eth0 up",
            ]
        );
    }

    #[test]
    fn nothing_is_made_where_tactus_runs() {
        for kind in [PathKind::Veth, PathKind::Bridge, PathKind::Macvlan, PathKind::Macvtap, PathKind::Tap] {
            let steps = said(kind, None);
            assert!(steps.iter().all(|step| !step.starts_with("Here")), "{steps:?}");
            assert_eq!(steps.iter().any(|step| step.starts_with("Machine")), has_machine(kind), "{kind}");
        }
        assert_eq!(said(PathKind::Loopback, None), [""; 0]);
    }

    #[test]
    fn real_interfaces_are_moved_before_anything_else_and_nothing_is_made() {
        let steps = said(PathKind::Nic, Some(["ens1", "ens2"]));
        assert_eq!(
            steps[..2],
            ["Here: ip link set dev ens1 netns 11", "Here: ip link set dev ens2 netns 22"]
        );
        assert!(steps.iter().all(|step| !step.contains("link add") && !step.contains("mtu")), "{steps:?}");
        assert!(steps.contains(&"Far: ip address add 198.18.0.2/30 dev ens2".to_owned()), "{steps:?}");
    }
}
