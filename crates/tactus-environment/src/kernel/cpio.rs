//! A writer of initramfs archives ("newc" cpio, Documentation/driver-api/early-userspace of the
//! kernel). Pure.

/// An archive in the making.
#[derive(Debug, Default)]
pub struct Cpio {
    bytes: Vec<u8>,
    entries: u32,
}

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

impl Cpio {
    /// An empty archive.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory; those above it must have been added before.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY | 0o755, (0, 0), &[]);
    }

    /// Adds a file; `mode` is that of chmod(2).
    pub fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) {
        self.entry(path, FILE | mode, (0, 0), bytes);
    }

    /// Adds a character device.
    pub fn device(&mut self, path: &str, mode: u32, major: u32, minor: u32) {
        self.entry(path, CHARACTER_DEVICE | mode, (major, minor), &[]);
    }

    /// Adds the devices that PID 1 needs before it mounts anything: its console and `/dev/null`. Rust's library opens
    /// `/dev/null` in place of descriptors 0 to 2 if the kernel's console is not a terminal, and aborts without it.
    pub fn first_devices(&mut self) {
        self.directory("dev");
        self.device("dev/console", 0o600, 5, 1);
        self.device("dev/null", 0o666, 1, 3);
    }

    /// The archive.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        let path = path.trim_start_matches('/');
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("nothing in an initramfs is 4 GiB long");
        let name = u32::try_from(path.len() + 1).expect("no path is 4 GiB long");
        // magic, ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor,
        // rdevminor, namesize, check
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, major, minor, name, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08X}").into_bytes());
        }
        self.bytes.extend(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn busybox_reads_what_is_written() {
        let mut archive = Cpio::new();
        archive.first_devices();
        archive.file("/init", 0o755, b"#!/bin/sh\n");
        archive.file("odd", 0o644, b"12345");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let console = bytes.windows(11).position(|window| window == b"dev/console").unwrap();
        // Name size and check lie between the device's numbers and the name.
        assert_eq!(&bytes[console - 32..console - 16], b"0000000500000001");
        let Some(busybox) = tactus_system::System::find_program(&tactus_system::Real, "busybox") else {
            assert!(std::env::var_os("TACTUS_TEST_ALL").is_none(), "busybox is needed (busybox-static)");
            eprintln!("skipped: busybox is not installed");
            return;
        };
        #[expect(clippy::disallowed_methods, reason = "the archive goes in through stdin")]
        let mut child = std::process::Command::new(busybox)
            .args(["cpio", "-tv"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[0].starts_with("drwxr-xr-x") && lines[0].ends_with(" dev"), "{text}");
        assert!(lines[1].starts_with("crw-------") && lines[1].ends_with("dev/console"), "{text}");
        assert!(lines[2].starts_with("crw-rw-rw-") && lines[2].ends_with("dev/null"), "{text}");
        assert!(lines[3].starts_with("-rwxr-xr-x") && lines[3].ends_with(" init"), "{text}");
        assert!(lines[4].contains(" 5 ") && lines[4].ends_with(" odd"), "{text}");
    }
}
