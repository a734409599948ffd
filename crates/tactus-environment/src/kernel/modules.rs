//! Which modules of a kernel a guest needs, out of that kernel's own tree.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use tactus_system::System;

use super::{elf, modinfo, unpack};

/// Where the wanted modules and what they depend on usually lie; the whole tree is only searched when
/// something is missing here.
const LIKELY: [&str; 4] =
    ["kernel/drivers/virtio", "kernel/drivers/char", "kernel/drivers/char/hw_random", "kernel/lib"];
/// How deep a tree of modules is searched.
const DEPTH: usize = 12;
/// Files and directories that are looked at: ten times as many as a distribution's kernel has. A tree may come with a
/// plan, and a directory in it lead to itself.
const ENTRIES: usize = 1 << 16;
/// Bytes of all modules together, unpacked: those of a guest's channel and network have 10 MB with all that is there to
/// debug them.
const MOST: u64 = 256 << 20;
/// Bytes of the list of what is built in: a distribution's has 10 KB.
const LONGEST_LIST: u64 = 4 << 20;

/// A module, ready to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its file, unpacked.
    pub bytes: Vec<u8>,
}

/// The wanted modules and all that they depend on, in the order in which they load. Modules that are built into the
/// kernel are left out, and so are missing ones. A kernel that was built without modules has no tree, and one that
/// lacks the driver reports that itself.
///
/// # Errors
/// When a module exists and cannot be read.
pub fn needed(tree: Option<&Path>, wanted: &[&str], system: &dyn System) -> io::Result<Vec<Module>> {
    let Some(tree) = tree else { return Ok(Vec::new()) };
    let builtin = builtin(tree, system);
    let mut search = Search {
        system,
        builtin,
        files: BTreeMap::new(),
        tree,
        whole: false,
        entries: ENTRIES,
        room: MOST,
        seen: BTreeSet::new(),
    };
    for dir in LIKELY {
        search.add(&tree.join(dir), 0);
    }
    let mut order = Vec::new();
    for name in wanted {
        search.load(name, &mut order, 0)?;
    }
    Ok(order)
}

struct Search<'a> {
    system: &'a dyn System,
    builtin: Vec<String>,
    files: BTreeMap<String, PathBuf>,
    tree: &'a Path,
    whole: bool,
    /// How many more files are looked at.
    entries: usize,
    /// How many more bytes modules may have.
    room: u64,
    /// Modules that were looked at: each is once, whatever depends on it.
    seen: BTreeSet<String>,
}

impl Search<'_> {
    fn add(&mut self, dir: &Path, depth: usize) {
        for path in self.system.list(dir).unwrap_or_default() {
            let Some(left) = self.entries.checked_sub(1) else { return };
            self.entries = left;
            let Some(file) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if let Some(name) = modinfo::of_file(file) {
                self.files.insert(name, path);
            } else if depth > 0 && !file.contains('.') {
                self.add(&path, depth - 1);
            }
        }
    }

    fn find(&mut self, name: &str) -> Option<PathBuf> {
        if !self.files.contains_key(name) && !self.whole {
            self.whole = true;
            self.add(&self.tree.join("kernel"), DEPTH);
            self.add(&self.tree.join("updates"), DEPTH);
        }
        self.files.get(name).cloned()
    }

    fn load(&mut self, name: &str, order: &mut Vec<Module>, depth: usize) -> io::Result<()> {
        let name = modinfo::canonical(name);
        // Only a hostile tree has dependencies in a circle, or a chain that is longer than trees are deep.
        if depth > DEPTH || self.builtin.contains(&name) || !self.seen.insert(name.clone()) {
            return Ok(());
        }
        let Some(path) = self.find(&name) else { return Ok(()) };
        let failed = |error: &io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let packed = self.system.read_regular(&path, self.room);
        let unpacked = packed.and_then(|packed| unpack::module(&path.to_string_lossy(), packed, self.room));
        let bytes = unpacked.map_err(|error| failed(&error))?;
        // A link in a tree that came with a plan may lead to any file of this machine, and the guest gets the bytes.
        if !elf::is_object(&bytes) {
            return Err(failed(&io::Error::new(io::ErrorKind::InvalidData, "it is not a kernel module")));
        }
        self.room = self.room.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        for other in modinfo::depends(&bytes) {
            self.load(&other, order, depth + 1)?;
        }
        order.push(Module { name, bytes });
        Ok(())
    }
}

/// Names of the modules that are part of the kernel itself.
fn builtin(tree: &Path, system: &dyn System) -> Vec<String> {
    let list = system.read_regular(&tree.join("modules.builtin"), LONGEST_LIST).unwrap_or_default();
    let list = String::from_utf8_lossy(&list).into_owned();
    list.lines().filter_map(|line| modinfo::of_file(line.rsplit('/').next()?)).collect()
}

#[cfg(test)]
mod tests {
    use tactus_system::{Memory, Real};

    use super::super::modinfo::tests::module_with;
    use super::*;

    fn names(modules: &[Module]) -> Vec<&str> {
        modules.iter().map(|module| module.name.as_str()).collect()
    }

    fn tree() -> Memory {
        Memory::new()
            .file("/m/modules.builtin", "kernel/drivers/virtio/virtio.ko\n")
            .file("/m/kernel/drivers/virtio/virtio_ring.ko", module_with(b"depends=\0"))
            .file(
                "/m/kernel/drivers/virtio/virtio_pci.ko",
                module_with(b"depends=virtio_ring,virtio,virtio-far\0"),
            )
            .file("/m/kernel/a/b/virtio-far.ko", module_with(b"depends=\0"))
            .file("/m/kernel/drivers/char/virtio_console.ko", module_with(b"depends=virtio_ring,virtio\0"))
    }

    #[test]
    fn modules_come_in_the_order_in_which_they_load_and_builtin_ones_are_left_out() {
        let modules = needed(Some(Path::new("/m")), &["virtio_pci", "virtio_console"], &tree()).unwrap();
        assert_eq!(names(&modules), ["virtio_ring", "virtio_far", "virtio_pci", "virtio_console"]);
    }

    #[test]
    fn a_kernel_without_a_tree_has_everything_built_in() {
        assert!(needed(None, &["virtio_pci"], &tree()).unwrap().is_empty());
        assert!(needed(Some(Path::new("/nowhere")), &["virtio_pci"], &tree()).unwrap().is_empty());
    }

    #[test]
    fn a_circle_of_dependencies_ends() {
        let circle = Memory::new()
            .file("/m/kernel/drivers/virtio/a.ko", module_with(b"depends=b\0"))
            .file("/m/kernel/drivers/virtio/b.ko", module_with(b"depends=a\0"));
        let modules = needed(Some(Path::new("/m")), &["a"], &circle).unwrap();
        assert_eq!(modules.iter().filter(|module| module.name == "a").count(), 1);
    }

    #[test]
    fn modules_that_all_need_each_other_are_looked_at_once_each() {
        let names: Vec<String> = (0..40).map(|n| format!("m{n}")).collect();
        let info = format!("depends={}\0", names.join(","));
        let file = |tree: Memory, name: &String| {
            tree.file(format!("/m/kernel/drivers/virtio/{name}.ko"), module_with(info.as_bytes()))
        };
        // Following every way through them would take longer than a lifetime.
        let tree = names.iter().fold(Memory::new(), file);
        let modules = needed(Some(Path::new("/m")), &["m0"], &tree).unwrap();
        let found: BTreeSet<&str> = modules.iter().map(|module| module.name.as_str()).collect();
        assert_eq!((found.len(), modules.len()), (names.len(), names.len()));
    }

    #[test]
    fn a_module_that_is_none_is_named_and_the_guest_gets_nothing_of_it() {
        for file in ["virtio_pci.ko", "virtio_pci.ko.gz"] {
            let secret =
                Memory::new().file(format!("/m/kernel/drivers/virtio/{file}"), "root:$y$j9T$:19000::");
            let error = needed(Some(Path::new("/m")), &["virtio_pci"], &secret).unwrap_err();
            assert!(error.to_string().contains(file), "{error}");
        }
    }

    /// A tree on disk, as it may come with a plan.
    fn hostile(plant: impl Fn(&Path)) -> io::Result<Vec<Module>> {
        let dir = tempfile::tempdir().unwrap();
        let drivers = dir.path().join("kernel/drivers/virtio");
        Real.make_dir(&drivers).unwrap();
        plant(&drivers);
        needed(Some(dir.path()), &["virtio_pci"], &Real)
    }

    #[test]
    fn pipes_devices_and_directories_that_lead_to_themselves_hold_nobody_up() {
        let link = |to: &str, at: &Path| rustix::fs::symlink(to, at).unwrap();
        for (plant, says) in
            [("pipe", "regular file"), ("/dev/zero", "regular file"), ("/etc/passwd", "not a kernel module")]
        {
            let found = hostile(|dir| match plant {
                "pipe" => {
                    let path = dir.join("virtio_pci.ko");
                    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
                    link("virtio_pci.ko", &dir.join("modules.builtin"));
                }
                to => link(to, &dir.join("virtio_pci.ko")),
            });
            let error = found.unwrap_err().to_string();
            assert!(error.contains(says), "{plant}: {error}");
        }
        // A search of all levels would visit 10^12 directories.
        let found = hostile(|dir| (0..10).for_each(|n| link(".", &dir.join(format!("self{n}")))));
        assert!(found.unwrap().is_empty());
    }

    #[test]
    fn modules_that_are_larger_together_than_any_are_refused() {
        let (mut packed, end) = (module_with(b"depends=\0"), vec![0; 1 << 20]);
        packed.extend(end);
        assert!(unpack::module("a.ko", packed.clone(), 1 << 20).is_err());
        assert!(unpack::module("a.ko.gz", unpack::tests::gzip(&packed), 1 << 20).is_err());
        assert!(unpack::module("a.ko.gz", unpack::tests::gzip(&packed), 2 << 20).unwrap() == packed);
    }

    #[test]
    fn a_damaged_module_is_named() {
        let damaged = Memory::new().file("/m/kernel/drivers/virtio/virtio_pci.ko.xz", "no xz");
        let error = needed(Some(Path::new("/m")), &["virtio_pci"], &damaged).unwrap_err();
        assert!(error.to_string().contains("virtio_pci.ko.xz"), "{error}");
    }
}
