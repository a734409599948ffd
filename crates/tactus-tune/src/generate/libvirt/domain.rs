//! A user's own domain: what it has already, and what is made of it.

use super::edit::{Setting, What, apply};
use super::settings::{Guest, drops, settings};
use super::tree::{Element, Tree};
use crate::generate::{Accel, GenerateError, GenerateRequest, GuestOptions, Output, Size};

/// Changes a domain so that it is a real-time guest: in place, and nothing but what must be.
/// What the request does not say is taken from the domain: its name, vCPUs, memory and accelerator.
/// `file` is the name that errors call it by.
///
/// # Errors
/// When it is no domain that can be changed, or does not fit on the machine.
pub fn patch(
    text: &str,
    file: &str,
    request: &GenerateRequest<'_>,
) -> Result<(String, Output), GenerateError> {
    let refuse = |reason: String, hint: &str| GenerateError::Domain {
        file: file.to_owned(),
        reason,
        hint: hint.to_owned(),
    };
    const DUMP: &str = "give it the output of `virsh dumpxml --inactive NAME`";
    let tree = Tree::parse(text).map_err(|reason| refuse(reason, DUMP))?;
    let root = tree.root();
    if root.name != "domain" {
        return Err(refuse(format!("its root is <{}>, not <domain>", root.name), DUMP));
    }
    let own = match root.attribute("type") {
        Some("kvm") => Accel::Kvm,
        Some("qemu") => Accel::Tcg,
        other => {
            let kind = other.unwrap_or("not said");
            return Err(refuse(
                format!("its type is {kind}; only domains of the types kvm and qemu can be changed"),
                DUMP,
            ));
        }
    };
    let accel = request.options.accel.unwrap_or(own);
    let options = GuestOptions {
        vcpus: Some(match request.options.vcpus {
            Some(count) => count,
            None => number(&tree, "vcpu")
                .ok_or_else(|| refuse("it does not say its number of vCPUs".into(), DUMP))?,
        }),
        memory: Some(match request.options.memory {
            Some(memory) => memory,
            None => {
                memory(&tree, "memory").ok_or_else(|| refuse("it does not say its memory".into(), DUMP))?
            }
        }),
        accel: Some(accel),
        ..request.options.clone()
    };
    let request = GenerateRequest { options: &options, ..*request };
    let placement = request.placement(2)?;
    let (memory, page) = request.memory()?;
    let iothreads = number(&tree, "iothreads").unwrap_or(0).clamp(1, 64);
    let said = ["memory", "currentMemory"]
        .into_iter()
        .filter(|name| self::memory(&tree, name) == Some(memory))
        .collect();
    let usb = plugged(&tree);
    let guest = Guest { request: &request, placement, memory, page, accel, iothreads, said, usb };

    let mut output = Output { notes: notes(&tree, &guest), ..Output::default() };
    if accel == Accel::Tcg {
        output.notes.extend(drops(&request));
    }
    let mut new = text.to_owned();
    for setting in strangers(&tree, &guest).into_iter().chain(settings(&guest)) {
        let said = apply(&mut new, &setting).map_err(|reason| refuse(reason, DUMP))?;
        let check = if setting.check.is_empty() { String::new() } else { format!(" ({})", setting.check) };
        output.notes.extend(said.into_iter().map(|what| format!("changed: {what}{check}")));
    }
    Ok((new, output))
}

fn number(tree: &Tree, name: &str) -> Option<usize> {
    tree.find(&[name])?.text.trim().parse().ok().filter(|count| (1..=4096).contains(count))
}

/// The domain's memory. libvirt counts in KiB where no unit is said.
fn memory(tree: &Tree, name: &str) -> Option<Size> {
    let element = tree.find(&[name])?;
    let unit: u64 = match element.attribute("unit").unwrap_or("KiB") {
        "b" | "bytes" => 1,
        "KB" => 1000,
        "k" | "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "M" | "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "G" | "GiB" => 1 << 30,
        "TB" => 1_000_000_000_000,
        "T" | "TiB" => 1 << 40,
        _ => return None,
    };
    let bytes = element.text.trim().parse::<u64>().ok()?.checked_mul(unit)?;
    // 64 TiB is more than libvirt takes anywhere; above it sums could overflow.
    (1 << 20..=64 << 40).contains(&bytes).then_some(Size(bytes))
}

/// Whether something hangs on the guest's USB that cannot simply go.
fn plugged(tree: &Tree) -> bool {
    let Some(devices) = tree.find(&["devices"]) else { return false };
    let has = |name: &str, on: &dyn Fn(&Element) -> bool| tree.children(devices, name).any(on);
    has("hostdev", &|e| e.attribute("type") == Some("usb"))
        || has("hub", &|e| e.attribute("type") == Some("usb"))
        || has("disk", &|e| tree.children(e, "target").any(|target| target.attribute("bus") == Some("usb")))
        || has("sound", &|e| e.attribute("model") == Some("usb"))
        || has("interface", &|e| {
            tree.children(e, "model")
                .any(|model| model.attribute("type").is_some_and(|t| t.starts_with("usb")))
        })
        || has("serial", &|e| tree.children(e, "target").any(|t| t.attribute("type") == Some("usb-serial")))
}

/// Pins of vCPUs and threads that there will not be, and limits that would stop a vCPU.
fn strangers(tree: &Tree, guest: &Guest<'_>) -> Vec<Setting> {
    let no = |path, with, check| Setting { check, why: String::new(), what: What::No(path, with) };
    let mut all = vec![
        no(&["cputune", "quota"], Vec::new(), "ctr-cfs-quota"),
        no(&["cputune", "global_quota"], Vec::new(), "ctr-cfs-quota"),
    ];
    let Some(tune) = tree.find(&["cputune"]) else { return all };
    let mut strange =
        |path: &'static [&'static str], key: &'static str, good: std::ops::Range<usize>, check| {
            let values = tree.children(tune, path[path.len() - 1]).filter_map(|pin| pin.attribute(key));
            let stray =
                values.filter(|value| !value.parse().is_ok_and(|number: usize| good.contains(&number)));
            all.extend(stray.map(|value| no(path, vec![(key, value.to_owned())], check)));
        };
    strange(&["cputune", "vcpupin"], "vcpu", 0..guest.placement.count(), "vcpu-pin");
    strange(&["cputune", "iothreadpin"], "iothread", 1..guest.iothreads + 1, "iothread-pin");
    all
}

/// What stays as it is and should be looked at.
fn notes(tree: &Tree, guest: &Guest<'_>) -> Vec<String> {
    let mut notes = super::placement_notes(&guest.placement);
    if guest.usb {
        notes.push("no-extra-devices: USB stays, because a disk or device of the guest hangs on it".into());
    }
    if tree.find(&["vcpus"]).is_some() {
        notes.push("vcpu-pin: <vcpus> names single vCPUs; see that all of them are on".into());
    }
    if tree.find(&["cpu", "numa"]).is_some() || tree.find(&["numatune", "memnode"]).is_some() {
        notes.push("numa-locality: the guest has NUMA nodes of its own, which stay; give it one".into());
    }
    if tree.find(&["iothreadids"]).is_some() {
        notes.push(
            "iothread-pin: <iothreadids> gives threads other numbers than 1, 2, ...; see that each is pinned"
                .into(),
        );
    }
    if let Some(devices) = tree.find(&["devices"]) {
        for name in ["graphics", "video", "sound", "rng", "watchdog"] {
            if tree.children(devices, name).next().is_some() {
                notes.push(format!(
                    "no-extra-devices: <{name}> stays; a real-time guest is better off without it"
                ));
            }
        }
        for disk in tree.children(devices, "disk") {
            let driver = tree.children(disk, "driver").next();
            let says = |name| driver.and_then(|driver| driver.attribute(name));
            if disk.attribute("device").is_none_or(|d| d == "disk")
                && (says("type") != Some("raw") || says("cache") != Some("none"))
            {
                let target =
                    tree.children(disk, "target").next().and_then(|t| t.attribute("dev")).unwrap_or("?");
                notes.push(format!(
                    "disk-image: disk {target} is not raw with cache='none'; its data stays as it is"
                ));
            }
        }
    }
    notes
}
