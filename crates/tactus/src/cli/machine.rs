//! Arguments of the commands about what this machine has.

use clap::{Args, Subcommand};

/// Arguments of `environments`.
#[derive(Debug, Args)]
pub struct Environments {
    /// As a JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kernel`.
#[derive(Debug, Args)]
pub struct Kernel {
    #[command(subcommand)]
    pub what: KernelCommand,
}

/// What to do with guest kernels.
#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// List the kernels that a guest can boot
    List {
        /// As a JSON document
        #[arg(long)]
        json: bool,
    },
    /// Download a kernel with the distribution's package manager, without installing it
    Fetch {
        /// `rt`, `standard`, or a package
        #[arg(default_value = "rt")]
        name: String,
    },
    /// Choose the kernel that guests boot when the plan does not say
    Use {
        /// A name from `tactus kernel list`, or a path
        name: String,
    },
}
