//! Arguments of the commands about what this machine has.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `environments`.
#[derive(Debug, Args)]
pub struct Environments {
    /// As a JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `probe`.
#[derive(Debug, Args)]
pub struct Probe {
    /// The architecture; default: that of this machine
    #[arg(long, value_parser = ["x86_64", "aarch64"], default_value = tactus_environment::kernel::OWN)]
    pub arch: String,
    /// The file; `-` for stdout
    #[arg(long)]
    pub out: PathBuf,
}

/// Arguments of `kernel`.
#[derive(Debug, Args)]
pub struct Kernel {
    #[command(subcommand)]
    pub what: KernelCommand,
}

/// The subcommand of `kernel`.
#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// List the kernels that a guest can boot
    List {
        /// Only those for this architecture: `x86_64` or `aarch64`
        #[arg(long, value_parser = ["x86_64", "aarch64"])]
        arch: Option<String>,
        /// As a JSON document
        #[arg(long)]
        json: bool,
    },
    /// Download a kernel with the distribution's package manager, without installing it
    Fetch {
        /// `rt`, `standard`, or a package
        #[arg(default_value = "rt")]
        name: String,
        /// The guest's architecture, `x86_64` or `aarch64`; default: that of this machine
        #[arg(long, value_parser = ["x86_64", "aarch64"], default_value = tactus_environment::kernel::OWN)]
        arch: String,
    },
    /// Write the guest without an operating system to a file, for a boot loader: it measures bare metal by
    /// itself
    Bare {
        /// The file to write
        #[arg(long, default_value = "tactus-bare-guest.elf", value_hint = clap::ValueHint::FilePath)]
        out: PathBuf,
    },
    /// Choose the kernel that guests boot by default
    Use {
        /// A name from `tactus kernel list`, or a path
        name: String,
    },
}
