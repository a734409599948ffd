//! Changes a user's own domain: its present settings, and the edited text.

use tactus_model::facts::Facts;

use super::edit::{Setting, Wanted, What, apply};
use super::settings::{Guest, OVERHEAD, drops, settings};
use super::tree::{Element, Tree};
use super::{limits, threads};
use crate::generate::{Accel, GenerateError, GenerateRequest, GuestOptions, Output, Page, Size};

/// Changes a domain so that it is a real-time guest: in place, and only where needed. Values that the request leaves
/// out are taken from the domain: its name, vCPUs, memory and accelerator. `file` is its name in errors.
///
/// # Errors
/// When it is not a domain that can be changed, or does not fit on the machine.
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
            let kind = other.unwrap_or("not set");
            return Err(refuse(
                format!("its type is {kind}; only domains of the types kvm and qemu can be changed"),
                DUMP,
            ));
        }
    };
    let accel = request.options.accel.unwrap_or(own);
    let mut options = GuestOptions {
        vcpus: Some(match request.options.vcpus {
            Some(count) => count,
            None => number(&tree, "vcpu")
                .ok_or_else(|| refuse("it does not contain its number of vCPUs".into(), DUMP))?,
        }),
        memory: Some(match request.options.memory {
            Some(memory) => memory,
            None => memory(&tree, "memory")
                .ok_or_else(|| refuse("it does not contain its memory".into(), DUMP))?,
        }),
        accel: Some(accel),
        ..request.options.clone()
    };
    let pages = Pages::of(&tree);
    options.page = options.page.or_else(|| {
        let placement = GenerateRequest { options: &options, ..*request }.placement(2).ok()?;
        pages.choose(request.subject.facts, options.memory?, placement.node)
    });
    let request = GenerateRequest { options: &options, ..*request };
    let placement = request.placement(2)?;
    let (memory, page) = request.memory()?;
    let stays = pages == Pages::Other && request.options.page.is_none();
    let page = (!stays).then_some(page);
    let some = usize::from(threads::is_of_use(&tree));
    let iothreads = threads::ids(&tree, number(&tree, "iothreads").unwrap_or(0).clamp(some, 64));
    let amounts = ["memory", "currentMemory"].into_iter();
    let mut said: Vec<&str> = amounts.filter(|name| self::memory(&tree, name) == Some(memory)).collect();
    let limit = amount(tree.find(&["memtune", "hard_limit"]));
    if limit.is_some_and(|limit| limit.0 >= memory.0 + OVERHEAD) {
        said.push("hard_limit");
    }
    let usb = plugged(&tree);
    let guest = Guest { request: &request, placement, memory, page, accel, iothreads, said, usb };

    let mut output = Output { notes: notes(&tree, &guest), ..Output::default() };
    if accel == Accel::Tcg {
        output.notes.extend(drops(&request));
    }
    let mut new = text.to_owned();
    let all = limits::removed(&tree).into_iter().chain(strangers(&tree, &guest)).chain(settings(&guest));
    for setting in all.chain(cell(&tree, &guest)) {
        let said = apply(&mut new, &setting).map_err(|reason| refuse(reason, DUMP))?;
        let check = if setting.check.is_empty() { String::new() } else { format!(" ({})", setting.check) };
        output.notes.extend(said.into_iter().map(|what| format!("changed: {what}{check}")));
    }
    if let Some(thread) = guest.iothreads.first() {
        let said = threads::assign(&mut new, *thread).map_err(|reason| refuse(reason, DUMP))?;
        output.notes.extend(said.into_iter().map(|what| format!("changed: {what} (iothread-pin)")));
    }
    Ok((new, output))
}

fn number(tree: &Tree, name: &str) -> Option<usize> {
    tree.find(&[name])?.text.trim().parse().ok().filter(|count| (1..=4096).contains(count))
}

/// The domain's memory.
fn memory(tree: &Tree, name: &str) -> Option<Size> {
    amount(tree.find(&[name]))
}

/// An amount of memory. libvirt counts in KiB where no unit is said.
fn amount(element: Option<&Element>) -> Option<Size> {
    let element = element?;
    sized(element.text.trim(), element.attribute("unit"))
}

fn sized(number: &str, unit: Option<&str>) -> Option<Size> {
    let unit: u64 = match unit.unwrap_or("KiB") {
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
    let bytes = number.parse::<u64>().ok()?.checked_mul(unit)?;
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

/// The pages that a domain has its memory in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    /// It does not say.
    Unsaid,
    /// Huge pages of the size that is the host's default.
    Default,
    /// Those of this size.
    Of(Page),
    /// Of several sizes, for NUMA nodes of the guest, or of a size that x86 does not have: they stay.
    Other,
}

impl Pages {
    fn of(tree: &Tree) -> Self {
        let Some(huge) = tree.find(&["memoryBacking", "hugepages"]) else { return Self::Unsaid };
        let pages: Vec<&Element> = tree.children(huge, "page").collect();
        match pages[..] {
            [] => Self::Default,
            [page] if page.attribute("nodeset").is_none() => {
                let size = sized(page.attribute("size").unwrap_or_default(), page.attribute("unit"));
                let known = [Page::M2, Page::G1].into_iter().find(|page| size == Some(Size(page.bytes())));
                known.map_or(Self::Other, Self::Of)
            }
            _ => Self::Other,
        }
    }

    /// The pages for the domain: its own, if they fit; else those that the host has enough of. `None`: the best ones,
    /// if the host had enough of them.
    fn choose(self, facts: &Facts, memory: Size, node: Option<u32>) -> Option<Page> {
        let fits = |page: &Page| memory.0.is_multiple_of(page.bytes());
        let own = match self {
            Self::Of(page) => Some(page),
            Self::Default => {
                let told = tactus_model::cmdline::Cmdline::of(facts);
                let large =
                    told.get("default_hugepagesz").is_some_and(|size| size.eq_ignore_ascii_case("1g"));
                Some(if large { Page::G1 } else { Page::M2 })
            }
            Self::Unsaid | Self::Other => None,
        };
        let enough =
            |page: &Page| reserved(facts, *page, node).is_some_and(|has| has >= memory.0 / page.bytes());
        own.filter(fits).or_else(|| [Page::G1, Page::M2].into_iter().filter(fits).find(enough))
    }
}

/// How many huge pages the host has reserved, on the node where it matters.
fn reserved(facts: &Facts, page: Page, node: Option<u32>) -> Option<u64> {
    let pool = format!("hugepages-{}kB/nr_hugepages", page.bytes() / 1024);
    let of_node =
        node.and_then(|node| facts.number(&format!("/sys/devices/system/node/node{node}/hugepages/{pool}")));
    of_node.or_else(|| facts.number(&format!("/sys/kernel/mm/hugepages/{pool}")))
}

/// The one NUMA node that a guest has, with the guest's vCPUs and memory, on the host's node that its vCPUs are on.
fn cell(tree: &Tree, guest: &Guest<'_>) -> Vec<Setting> {
    let Some(numa) = tree.find(&["cpu", "numa"]) else { return Vec::new() };
    let cells: Vec<&Element> = tree.children(numa, "cell").collect();
    let [cell] = cells[..] else { return Vec::new() };
    let setting =
        |wanted| Setting { check: "numa-locality", why: String::new(), what: What::Element(wanted) };
    let last = guest.placement.count() - 1;
    let cpus = if last == 0 { "0".to_owned() } else { format!("0-{last}") };
    let mut attributes = vec![("cpus", Some(cpus))];
    if sized(cell.attribute("memory").unwrap_or_default(), cell.attribute("unit")) != Some(guest.memory) {
        let kib = guest.memory.0 / 1024;
        attributes.extend([("memory", Some(kib.to_string())), ("unit", Some("KiB".to_owned()))]);
    }
    let mut all =
        vec![setting(Wanted { path: &["cpu", "numa"], name: "cell", attributes, ..Wanted::default() })];
    let nodes = tree.find(&["numatune"]).map(|tune| tree.children(tune, "memnode").collect::<Vec<_>>());
    if let (Some([_]), Some(node)) = (nodes.as_deref(), guest.placement.node) {
        let attributes = vec![("nodeset", Some(node.to_string()))];
        all.push(setting(Wanted { path: &["numatune"], name: "memnode", attributes, ..Wanted::default() }));
    }
    all
}

/// Pins of vCPUs and threads that there will not be.
fn strangers(tree: &Tree, guest: &Guest<'_>) -> Vec<Setting> {
    let no = |path, with, check| Setting { check, why: String::new(), what: What::No(path, with) };
    let mut all = Vec::new();
    let Some(tune) = tree.find(&["cputune"]) else { return all };
    let vcpus: Vec<usize> = (0..guest.placement.count()).collect();
    let mut strange = |path: &'static [&'static str], key: &'static str, good: &[usize], check| {
        let values = tree.children(tune, path[path.len() - 1]).filter_map(|pin| pin.attribute(key));
        let stray = values.filter(|value| !value.parse().is_ok_and(|number: usize| good.contains(&number)));
        all.extend(stray.map(|value| no(path, vec![(key, value.to_owned())], check)));
    };
    strange(&["cputune", "vcpupin"], "vcpu", &vcpus, "vcpu-pin");
    strange(&["cputune", "iothreadpin"], "iothread", &guest.iothreads, "iothread-pin");
    all
}

/// Settings that stay and should be looked at.
fn notes(tree: &Tree, guest: &Guest<'_>) -> Vec<String> {
    let mut notes = super::placement_notes(&guest.placement);
    if guest.usb {
        notes.push("no-extra-devices: USB stays, because a disk or device of the guest uses it".into());
    }
    if tree.find(&["vcpus"]).is_some() {
        notes.push("vcpu-pin: <vcpus> names single vCPUs; check that all of them are on".into());
    }
    let cells = tree.find(&["cpu", "numa"]).map_or(0, |numa| tree.children(numa, "cell").count());
    if cells > 1 {
        notes.push(format!(
            "numa-locality: the guest keeps its {cells} NUMA nodes; check that their vCPUs and memory match the \
pins, or give it one node"
        ));
    }
    if !guest.iothreads.is_empty() && !threads::is_of_use(tree) {
        notes.push("iothread-pin: no disk of the guest can use its <iothreads>, which stay".into());
    }
    if let Some(page) = guest.page.filter(|page| *page != Page::Base) {
        let needed = guest.memory.0 / page.bytes();
        let node = guest.placement.node;
        if let Some(has) = reserved(guest.request.subject.facts, page, node).filter(|has| *has < needed) {
            let place = node.map(|node| format!(" on node {node}")).unwrap_or_default();
            notes.push(format!(
                "guest-hugepages: the host has {has} pages of {}iB{place}, but the guest needs {needed}: it does not \
start before they are reserved",
                page.word()
            ));
        }
    }
    notes.extend(limits::kept(tree));
    if let Some(devices) = tree.find(&["devices"]) {
        for name in ["graphics", "video", "sound", "rng", "watchdog"] {
            if tree.children(devices, name).next().is_some() {
                notes.push(format!(
                    "no-extra-devices: <{name}> stays; a real-time guest runs better without it"
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
                    "disk-image: disk {target} is not raw with cache='none'; tactus does not convert its data"
                ));
            }
        }
    }
    notes
}
