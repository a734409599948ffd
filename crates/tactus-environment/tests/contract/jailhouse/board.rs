//! A directory that is a board with Jailhouse: the stand-in, its tree, configurations, an inmate.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use tactus_environment::kernel;
use tactus_model::plan;
use tactus_system::topology;
use tactus_system::{Invocation, Real, System};

use super::uart::Uart;
use crate::altered::Altered;

const STAND_IN: &str = include_str!("../../fixtures/jailhouse/stand-in.sh");
const SYSFS: &str = "/sys/devices/jailhouse";
/// The name of the cell of a Linux inmate.
pub const CELL: &str = "linux-demo";

/// A board. Dropping it ends what is left of it.
pub struct Board {
    /// Where it lies.
    pub dir: PathBuf,
    _tree: tempfile::TempDir,
    _uart: Uart,
}

impl Board {
    /// A board that is off, with a driver, a system configuration and one of a cell for the
    /// CPUs that this process may use.
    pub fn new() -> Self {
        let tree = tempfile::tempdir().unwrap();
        let dir = tree.path().to_owned();
        fs::create_dir_all(dir.join("sysfs/cells")).unwrap();
        fs::create_dir_all(dir.join("cells")).unwrap();
        for (file, text) in [
            ("enabled", "0"),
            ("mem_pool_size", "994"),
            ("mem_pool_used", "59"),
            ("remap_pool_size", "131072"),
            ("remap_pool_used", "144"),
            ("core", ""),
            ("console", "Activating hypervisor\r\n"),
        ] {
            fs::write(dir.join("sysfs").join(file), format!("{text}\n")).unwrap();
        }
        fs::write(dir.join("cpuinfo"), "processor\t: 0\nflags\t\t: fpu vmx\n").unwrap();
        fs::write(dir.join("iomem"), "00100000-7fbfffff : System RAM\n").unwrap();
        std::os::unix::fs::symlink("sysfs/console", dir.join("ring")).unwrap();
        let board = Self { _uart: Uart::open(&dir), dir, _tree: tree };
        board.program("jailhouse", STAND_IN);
        board.program("jailhouse-cell-linux", "#!/bin/sh\n");
        board.program("dmesg", "#!/bin/sh\ncat \"$(dirname \"$0\")/kernel-log\"\n");
        let cpus = topology(&Real).allowed;
        let mask: u64 = cpus.iter().fold(0, |mask, cpu| mask | 1 << cpu);
        // Two more, for the cells of others.
        board.system_config("system.cell", "board", mask | 3 << 40);
        board.cell_config("linux.cell", CELL, mask);
        board.inmate("-serial unix:$here/uart.inmate");
        board
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.dir.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Makes the inmate an emulated machine with these further words of QEMU.
    pub fn inmate(&self, words: &str) {
        let cpus = topology(&Real).allowed.len();
        self.program(
            "run-inmate",
            &format!(
                "#!/bin/sh\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\nexec qemu-system-x86_64 -accel tcg -cpu max -m 256 \
-smp {cpus} -display none -nodefaults -no-reboot {words} -kernel \"$(cat \"$here/kernel\")\" -initrd \"$(cat \"$here/initrd\")\" \
-append \"$(cat \"$here/cmdline\")\"\n"
            ),
        );
    }

    /// Makes the inmate a script.
    pub fn inmate_script(&self, script: &str) {
        self.program("run-inmate", script);
    }

    /// Writes the configuration of a cell.
    pub fn cell_config(&self, file: &str, name: &str, mask: u64) {
        let mut bytes = b"JHCELL\x0d\0".to_vec();
        bytes.extend(name.bytes());
        bytes.resize(128, 0);
        bytes.extend(mask.to_le_bytes());
        fs::write(self.dir.join("cells").join(file), bytes).unwrap();
    }

    /// Writes the configuration of a system; its name and CPUs go into files beside it.
    pub fn system_config(&self, file: &str, name: &str, mask: u64) {
        self.system_config_of(13, file, name, mask);
    }

    /// The same of a revision.
    pub fn system_config_of(&self, revision: u8, file: &str, name: &str, mask: u64) {
        let mut bytes = b"JHSYST".to_vec();
        bytes.extend([revision, 0, 0, 0, 0, 0]);
        for word in [0x7fc0_0000u64, 0, 0x40_0000, 3] {
            bytes.extend(word.to_le_bytes());
        }
        let path = self.dir.join("cells").join(file);
        fs::write(&path, bytes).unwrap();
        fs::write(format!("{}.name", path.display()), name).unwrap();
        fs::write(format!("{}.mask", path.display()), mask.to_string()).unwrap();
    }

    /// The path of a file of the board.
    pub fn path(&self, file: &str) -> String {
        self.dir.join(file).display().to_string()
    }

    /// The text of a file in sysfs.
    pub fn sysfs(&self, file: &str) -> String {
        fs::read_to_string(self.dir.join("sysfs").join(file)).unwrap_or_default().trim().to_owned()
    }

    /// The CPUs of the root cell's kernel.
    pub fn online(&self) -> String {
        fs::read_to_string(self.dir.join("online")).unwrap_or_default().trim().to_owned()
    }

    /// The names of the cells that there are.
    pub fn cells(&self) -> Vec<String> {
        let dirs = Real.list(&self.dir.join("sysfs/cells")).unwrap();
        dirs.iter().map(|dir| fs::read_to_string(dir.join("name")).unwrap().trim().to_owned()).collect()
    }

    /// The plan's table for the cell of a Linux inmate with a UART.
    pub fn spec(&self) -> plan::Environment {
        // Without a kernel on this machine any path will do: the trial is then skipped for that reason.
        let kernel = kernel::chosen(kernel::OWN, &Real)
            .map_or_else(|_| "/nowhere/bzImage".into(), |kernel| kernel.path);
        let options = json!({
            "command": self.path("jailhouse"),
            "system": self.path("cells/system.cell"),
            "cell": self.path("cells/linux.cell"),
            "kernel": kernel,
            "cmdline": "console=ttyS0,115200 panic=-1",
            "console": self.path("uart"),
        });
        let options = serde_json::from_value(options).unwrap();
        plan::Environment { kind: "jailhouse".into(), options, ..plan::Environment::default() }
    }

    /// The machine with this board in it.
    pub fn system(&self) -> Altered {
        overlay(&self.dir)
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let disable = Invocation::new([self.path("jailhouse"), "disable".into()]);
        for _ in 0..2 {
            let _ = Real.run(&disable);
        }
    }
}

/// This machine, with the board's files in place of the machine's.
pub fn overlay(dir: &Path) -> Altered {
    let dir = dir.to_owned();
    Altered::new(move |path| {
        if let Ok(rest) = path.strip_prefix(SYSFS) {
            return dir.join("sysfs").join(rest);
        }
        match path.to_str() {
            Some("dmesg") => dir.join("dmesg"),
            Some("/sys/devices/system/cpu/online") if dir.join("online").exists() => dir.join("online"),
            Some("/proc/cpuinfo") => dir.join("cpuinfo"),
            Some("/proc/iomem") => dir.join("iomem"),
            _ => path.to_owned(),
        }
    })
}
