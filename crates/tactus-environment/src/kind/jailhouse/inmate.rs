//! A Linux inmate: a kernel, and an initramfs that contains the probe and the name of its channel. If the inmate
//! cannot receive, the initramfs also contains the messages for it.

use std::path::PathBuf;

use tactus_system::probe;

use super::command::Jailhouse;
use super::options::{HYPERVISOR, Options};
use crate::kernel::{self, Cpio};
use crate::support::cannot;
use crate::{Setting, StartError};

/// The architecture of the inmate: that of the machine.
const ARCH: &str = std::env::consts::ARCH;
/// Bytes per second into the hypervisor's console. Its ring holds 2048, and Jailhouse's driver looks at
/// it ten times a second.
const LOG_RATE: u32 = 8000;

/// Everything that is needed to boot it, any number of times.
pub struct Inmate {
    jailhouse: Jailhouse,
    config: String,
    kernel: PathBuf,
    dtb: Option<String>,
    cmdline: String,
    initrd: PathBuf,
    channel: String,
    one_way: bool,
}

impl Inmate {
    /// # Errors
    /// When the kernel is not known.
    pub fn new(
        jailhouse: &Jailhouse,
        options: &Options<'_>,
        setting: &Setting<'_>,
    ) -> Result<Self, StartError> {
        let wanted = options.kernel.unwrap_or_default();
        let kernel = match wanted.contains('/') {
            true => PathBuf::from(wanted),
            false => kernel::find(wanted, ARCH, setting.system)?.path,
        };
        let log = options.console == HYPERVISOR;
        Ok(Self {
            jailhouse: jailhouse.clone(),
            config: options.cell.unwrap_or_default().to_owned(),
            kernel,
            dtb: options.dtb.map(str::to_owned),
            cmdline: cmdline(options.cmdline, log),
            initrd: setting.workspace.join("initramfs.cpio"),
            channel: if log { format!("kmsg {LOG_RATE}\n") } else { "console\n".into() },
            one_way: !options.input,
        })
    }

    /// Boots it, anew if it runs. `said`: the messages for an inmate that cannot receive.
    ///
    /// # Errors
    /// When the initramfs cannot be written, or Jailhouse does not start it.
    pub fn boot(&self, said: &[u8]) -> Result<(), StartError> {
        let probe =
            probe::bytes(ARCH).ok_or_else(|| cannot("no probe", format!("none was built for {ARCH}")))?;
        let archive = archive(probe, &self.channel, self.one_way.then_some(said));
        let written = self.jailhouse.system.write(&self.initrd, &archive);
        written.map_err(|error| cannot(&self.initrd.display().to_string(), error))?;
        let (kernel, initrd) = (self.kernel.display().to_string(), self.initrd.display().to_string());
        let mut words = vec!["cell", "linux", &self.config, &kernel];
        if let Some(dtb) = &self.dtb {
            words.extend(["-d", dtb]);
        }
        words.extend(["-i", &initrd]);
        if !self.cmdline.is_empty() {
            words.extend(["-c", &self.cmdline]);
        }
        self.jailhouse.run(&words).map(drop).map_err(|refused| self.jailhouse.explain(&refused))
    }
}

/// The plan's parameters; the kernel must be told to use the hypervisor's console.
fn cmdline(own: &str, log: bool) -> String {
    match log && !own.split(' ').any(|word| word.starts_with("console=")) {
        true => format!("console=jailhouse {own}").trim_end().to_owned(),
        false => own.to_owned(),
    }
}

fn archive(probe: &[u8], channel: &str, said: Option<&[u8]>) -> Vec<u8> {
    let mut archive = Cpio::new();
    archive.first_devices();
    for dir in ["proc", "sys", "tmp"] {
        archive.directory(dir);
    }
    archive.file("init", 0o755, probe);
    archive.file("channel", 0o644, channel.as_bytes());
    if let Some(said) = said {
        archive.file("input", 0o644, said);
    }
    archive.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initramfs_says_what_the_channel_is_and_what_would_have_been_said() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let two_way = text(&archive(b"PROBE", "console\n", None));
        assert!(two_way.contains("PROBE") && two_way.contains("console\n") && !two_way.contains("input"));
        let one_way = text(&archive(b"PROBE", "kmsg 8000\n", Some(b"a job")));
        assert!(one_way.contains("kmsg 8000\n") && one_way.contains("input\0") && one_way.contains("a job"));
    }

    #[test]
    fn the_hypervisors_console_is_named_to_the_kernel_unless_the_plan_did() {
        assert_eq!(cmdline("quiet", true), "console=jailhouse quiet");
        assert_eq!(cmdline("", true), "console=jailhouse");
        assert_eq!(cmdline("console=ttyS0 quiet", true), "console=ttyS0 quiet");
        assert_eq!(cmdline("", false), "");
    }
}
