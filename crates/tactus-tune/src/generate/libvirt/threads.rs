//! The threads of a domain's disks: which there are, and which disk each serves.

use super::edit::set_attribute;
use super::tree::{Element, Tree};

/// The numbers of the domain's threads. libvirt gives those that `<iothreadids>` does not name the lowest free ones.
pub fn ids(tree: &Tree, count: usize) -> Vec<usize> {
    let named = tree.find(&["iothreadids"]).map(|all| tree.children(all, "iothread").collect::<Vec<_>>());
    let numbers = named.into_iter().flatten().filter_map(|one| one.attribute("id")?.parse().ok());
    let mut ids: Vec<usize> = numbers.take(64).collect();
    let mut free = 1;
    while ids.len() < count {
        if !ids.contains(&free) {
            ids.push(free);
        }
        free += 1;
    }
    ids
}

/// Disks and controllers that can have a thread: virtio by PCI or CCW.
fn able(tree: &Tree) -> Vec<&Element> {
    let Some(devices) = tree.find(&["devices"]) else { return Vec::new() };
    let says = |one: &Element, child: &str, name: &str, value: &str| {
        tree.children(one, child).any(|found| found.attribute(name) == Some(value))
    };
    let addressed = |one: &Element| {
        tree.children(one, "address").all(|at| matches!(at.attribute("type"), Some("pci" | "ccw")))
    };
    let disks = tree
        .children(devices, "disk")
        .filter(|disk| disk.attribute("device").is_none_or(|device| device == "disk"))
        .filter(|disk| says(disk, "target", "bus", "virtio"));
    let controllers = tree
        .children(devices, "controller")
        .filter(|one| one.attribute("type") == Some("scsi") && one.attribute("model") == Some("virtio-scsi"));
    disks.chain(controllers).filter(|one| addressed(one)).collect()
}

/// Whether a disk or controller has one.
fn has_thread(tree: &Tree, one: &Element) -> bool {
    tree.children(one, "driver").any(|driver| {
        driver.attribute("iothread").is_some() || tree.children(driver, "iothreads").next().is_some()
    })
}

/// Whether one of the disks is on a thread, or can be put on one.
pub fn is_of_use(tree: &Tree) -> bool {
    is_used(tree) || !able(tree).is_empty()
}

/// Whether one of the disks or controllers is on a thread.
pub fn is_used(tree: &Tree) -> bool {
    let Some(devices) = tree.find(&["devices"]) else { return false };
    ["disk", "controller"].iter().any(|name| tree.children(devices, name).any(|one| has_thread(tree, one)))
}

/// Puts the disks on a thread where none has one. Returns what was changed.
///
/// # Errors
/// When the document cannot be read.
pub fn assign(text: &mut String, thread: usize) -> Result<Vec<String>, String> {
    let mut said = Vec::new();
    if is_used(&Tree::parse(text)?) {
        return Ok(said);
    }
    loop {
        let tree = Tree::parse(text)?;
        let Some(one) = able(&tree).into_iter().find(|one| !has_thread(&tree, one)) else { return Ok(said) };
        let target = tree.children(one, "target").next().and_then(|target| target.attribute("dev"));
        said.push(match target {
            Some(target) => format!("disk {target} on iothread {thread}"),
            None => {
                format!("the {} controller on iothread {thread}", one.attribute("model").unwrap_or("scsi"))
            }
        });
        match (tree.children(one, "driver").next(), &one.end) {
            (Some(driver), _) => {
                let close = text[..driver.start.end].rfind('>').unwrap_or(driver.start.end);
                let mut tag = text[driver.start.start..close].to_owned();
                set_attribute(&mut tag, "iothread", Some(&thread.to_string()));
                text.replace_range(driver.start.start..close, &tag);
            }
            (None, Some(_)) => text.insert_str(one.start.end, &format!("<driver iothread='{thread}'/>")),
            (None, None) => {
                let tag = text[one.start.clone()].trim_end_matches("/>").trim_end().to_owned();
                let new = format!("{tag}><driver iothread='{thread}'/></{}>", one.name);
                text.replace_range(one.start.clone(), &new);
            }
        }
    }
}
