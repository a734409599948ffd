//! A place on the command line: a kind of environment, or the address of one that runs.

use tactus_environment::{self as environment, ENVIRONMENTS, Usable};
use tactus_model::bundle::{LONGEST_NAME, file_name};
use tactus_model::plan::Environment;
use tactus_run::plan::CONTAINERS;
use tactus_system::System;

use crate::exit::Failure;
use crate::nearest;

/// Other words for kinds. `container` is not among them: it is the first kind that this machine has.
const ALIASES: [(&str, &str); 6] = [
    ("kvm", "qemu"),
    ("vm", "qemu"),
    ("guest", "qemu"),
    ("kubernetes", "pod"),
    ("virsh", "libvirt"),
    ("cell", "jailhouse"),
];

/// The word for any container.
const CONTAINER: &str = "container";

/// The hint for every wrong address.
const ADDRESSES: &str = "an address is pod:NAMESPACE/NAME, docker:NAME, podman:NAME, lxc:NAME, nspawn:NAME, libvirt:DOMAIN, \
                         ssh:[USER@]HOST or serial:DEVICE";

/// An environment as the command line names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its name in the plan, which is how rows and limits (`--max NAME=`) call it.
    pub name: String,
    pub spec: Environment,
}

/// Words that a shell completes where a place is asked for.
pub fn words() -> Vec<&'static str> {
    let kinds = ENVIRONMENTS.iter().map(|kind| kind.kind());
    kinds.chain([CONTAINER]).chain(ALIASES.map(|(alias, _)| alias)).collect()
}

impl Place {
    /// The place that `text` names: `KIND`, another word for a kind, or `KIND:ADDRESS` of what runs already.
    pub fn of(text: &str, system: &dyn System) -> Result<Self, Failure> {
        let (word, address) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        let kind = kind(word, system)?;
        let mut spec = Environment { kind: kind.into(), ..Environment::default() };
        let Some(address) = address else { return Ok(Self { name: kind.into(), spec }) };
        let wrong = |why: &str| Failure::say(format!("--in {text}: {why}"), ADDRESSES);
        if address.is_empty() || address.contains(char::is_whitespace) || address.contains(char::is_control) {
            return Err(wrong("the address after the colon is missing, or contains spaces"));
        }
        // Tools take a word that begins with a dash as an option.
        if address.split(['/', '@']).any(|part| part.starts_with('-')) {
            return Err(wrong("a name cannot begin with a dash"));
        }
        match kind {
            "ssh" => set(&mut spec, "to", address),
            "serial" => set(&mut spec, "device", address),
            "pod" => {
                let parts: Vec<&str> = address.split('/').collect();
                if parts.len() > 3 || parts.iter().any(|part| part.is_empty()) {
                    return Err(wrong("a pod is NAME, NAMESPACE/NAME or NAMESPACE/NAME/CONTAINER"));
                }
                if let [namespace, _, ..] = parts[..] {
                    set(&mut spec, "namespace", namespace);
                }
                if let [_, _, container] = parts[..] {
                    set(&mut spec, "container", container);
                }
                spec.attach = parts.get(1).or(parts.first()).map(|name| (*name).to_owned());
            }
            _ if environment::find(kind).is_some_and(environment::Environment::can_attach) => {
                spec.attach = Some(address.to_owned());
            }
            _ => {
                return Err(wrong(&format!("{kind} has no address: tactus starts it itself")));
            }
        }
        let name = format!("{kind}:{address}");
        if file_name(&name).len() > LONGEST_NAME {
            return Err(wrong(&format!("the address is longer than {LONGEST_NAME} letters")));
        }
        Ok(Self { name, spec })
    }
}

fn set(spec: &mut Environment, key: &str, value: &str) {
    spec.options.insert(key.into(), value.into());
}

/// The kind for which another word stands.
pub fn synonym(word: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(alias, _)| *alias == word).map(|(_, kind)| *kind)
}

/// The kind that a word means.
fn kind(word: &str, system: &dyn System) -> Result<&'static str, Failure> {
    let meant = synonym(word).unwrap_or(word);
    if meant == CONTAINER {
        let usable = |kind: &&&str| {
            environment::find(kind).is_some_and(|kind| matches!(kind.usable(system), Usable::Yes { .. }))
        };
        return Ok(CONTAINERS.iter().find(usable).unwrap_or(&CONTAINERS[0]));
    }
    environment::find(meant).map(environment::Environment::kind).ok_or_else(|| {
        let known: Vec<&str> = ENVIRONMENTS.iter().map(|kind| kind.kind()).collect();
        let all = format!("use one of {}; {ADDRESSES}", known.join(", "));
        Failure::say(format!("`{word}` is not a kind of environment"), nearest::hint(word, words(), all))
    })
}

#[cfg(test)]
mod tests {
    use tactus_system::Real;

    use super::*;

    fn place(text: &str) -> Place {
        Place::of(text, &Real).unwrap_or_else(|failure| panic!("{text}: {}", failure.words()))
    }

    #[test]
    fn a_kind_or_another_word_for_it_is_a_place_that_tactus_starts() {
        for (word, kind) in
            [("host", "host"), ("qemu", "qemu"), ("kvm", "qemu"), ("vm", "qemu"), ("cell", "jailhouse")]
        {
            let place = place(word);
            assert_eq!((place.name.as_str(), place.spec.kind.as_str()), (kind, kind), "{word}");
            assert_eq!(place.spec.attach, None, "{word}");
        }
        assert!(CONTAINERS.contains(&place("container").spec.kind.as_str()));
    }

    #[test]
    fn an_address_is_attached_to() {
        for (text, kind, name) in [
            ("docker:plc-runtime", "docker", "plc-runtime"),
            ("podman:a1b2c3", "podman", "a1b2c3"),
            ("lxc:web", "lxc", "web"),
            ("nspawn:box", "nspawn", "box"),
            ("libvirt:rt-guest", "libvirt", "rt-guest"),
            ("virsh:rt-guest", "libvirt", "rt-guest"),
            ("pod:plc-0", "pod", "plc-0"),
        ] {
            let place = place(text);
            assert_eq!(place.spec.kind, kind, "{text}");
            assert_eq!(place.spec.attach.as_deref(), Some(name), "{text}");
            assert_eq!(place.name, format!("{kind}:{name}"), "{text}");
        }
    }

    #[test]
    fn pods_have_a_namespace_and_a_container_machines_a_user_and_a_host() {
        let of = |text: &str, key: &str| {
            place(text).spec.options.get(key).and_then(|v| v.as_str().map(str::to_owned))
        };
        assert_eq!(of("pod:factory/plc-0", "namespace").as_deref(), Some("factory"));
        assert_eq!(place("pod:factory/plc-0").spec.attach.as_deref(), Some("plc-0"));
        assert_eq!(of("kubernetes:factory/plc-0/loop", "container").as_deref(), Some("loop"));
        assert_eq!(of("ssh:root@plc-7", "to").as_deref(), Some("root@plc-7"));
        assert_eq!(of("serial:/dev/ttyS1", "device").as_deref(), Some("/dev/ttyS1"));
    }

    #[test]
    fn what_is_no_place_is_named_with_what_would_be_one() {
        for (text, says) in [
            ("", "is not a kind"),
            ("vbox", "`vbox` is not a kind"),
            ("qmeu", "`qmeu` is not a kind"),
            ("docker:", "the address after the colon is missing"),
            ("docker:a b", "contains spaces"),
            ("docker:a\nb", "contains spaces"),
            ("docker:--privileged", "cannot begin with a dash"),
            ("ssh:-oProxyCommand=touch", "cannot begin with a dash"),
            ("ssh:root@-oProxyCommand=touch", "cannot begin with a dash"),
            ("pod:a/-b", "cannot begin with a dash"),
            ("pod:a/b/c/d", "NAMESPACE/NAME"),
            ("pod:/b", "NAMESPACE/NAME"),
            ("qemu:guest", "qemu has no address"),
            ("host:here", "host has no address"),
        ] {
            let failure = Place::of(text, &Real).unwrap_err();
            assert!(failure.words().contains(says), "{text}: {}", failure.words());
        }
        let long = format!("docker:{}", "x".repeat(LONGEST_NAME));
        assert!(Place::of(&long, &Real).unwrap_err().words().contains("longer"));
    }
}
