//! The whole system of a guest: the probe, and the drivers of its channel. Pure.

use crate::kernel::{Cpio, Module};
use crate::support::programs::{Files, directories};

/// The kernel's configuration: its release, and the text.
pub type Config = (String, Vec<u8>);

/// The archive that the guest's kernel unpacks. The configuration lies where distributions put it, so
/// that the probe finds it there as on any other system. With programs the guest has the mounts that a
/// container needs.
pub fn write(probe: &[u8], modules: &[Module], config: Option<&Config>, programs: &Files) -> Vec<u8> {
    let mut archive = Cpio::new();
    archive.first_devices();
    for dir in ["proc", "sys", "tmp", "modules"] {
        archive.directory(dir);
    }
    archive.file("init", 0o755, probe);
    let mut list = String::new();
    for module in modules {
        let path = format!("/modules/{}.ko", module.name);
        archive.file(&path, 0o644, &module.bytes);
        list.push_str(&path);
        list.push('\n');
    }
    archive.file("modules.list", 0o644, list.as_bytes());
    if let Some((release, text)) = config {
        archive.directory("boot");
        archive.file(&format!("boot/config-{release}"), 0o644, text);
    }
    for directory in directories(programs) {
        archive.directory(&directory.display().to_string());
    }
    for (path, bytes) in programs {
        archive.file(&path.display().to_string(), 0o755, bytes);
    }
    if !programs.is_empty() {
        archive.file("mounts.list", 0o644, MOUNTS.as_bytes());
    }
    archive.finish()
}

/// The mounts that a container runtime looks for.
const MOUNTS: &str = "cgroup2 /sys/fs/cgroup\ndevpts /dev/pts\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_listed_in_the_order_in_which_they_load() {
        let module = |name: &str| Module { name: name.into(), bytes: name.as_bytes().to_owned() };
        let archive = write(b"PROBE", &[module("virtio_ring"), module("virtio_pci")], None, &Files::new());
        let text = String::from_utf8_lossy(&archive);
        assert!(text.contains("/modules/virtio_ring.ko\n/modules/virtio_pci.ko\n"));
        assert!(text.contains("PROBE") && text.contains("TRAILER!!!") && !text.contains("boot"));
        assert!(!text.contains("mounts.list"));
    }

    #[test]
    fn programs_lie_where_they_lie_here() {
        let files = [("/usr/bin/crun".into(), b"CRUN".to_vec())].into_iter().collect();
        let archive = write(b"PROBE", &[], None, &files);
        let text = String::from_utf8_lossy(&archive);
        let (dir, file) = (text.find("usr/bin\0").unwrap(), text.find("usr/bin/crun\0").unwrap());
        assert!(dir < file && text.contains("cgroup2 /sys/fs/cgroup\n"));
    }

    #[test]
    fn the_kernels_configuration_lies_where_distributions_put_it() {
        let archive =
            write(b"PROBE", &[], Some(&("6.1.0-rt".into(), b"CONFIG_SMP=y".to_vec())), &Files::new());
        let text = String::from_utf8_lossy(&archive);
        assert!(text.contains("boot/config-6.1.0-rt\0") && text.contains("CONFIG_SMP=y"));
    }
}
