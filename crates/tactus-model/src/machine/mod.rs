//! The facts of a machine, and the conclusions from them.

pub mod caches;
pub mod cmdline;
pub mod dependence;
pub mod facts;
pub mod hypervisor;
pub mod interrupts;
pub mod isolation;
pub mod own_groups;
pub mod partition;
pub mod patience;
pub mod process_files;
pub mod qemu_arguments;
pub mod resctrl;
pub mod scheduling;
pub mod threads;
pub mod topology;
