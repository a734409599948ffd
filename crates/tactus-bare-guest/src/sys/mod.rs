//! The processor and the machine's devices, behind functions that are safe to call. The guest has the whole machine
//! to itself: one CPU, no other program, memory that maps onto itself. Each function says which of this it needs.

pub mod apic;
pub mod boot;
pub mod cpu;
pub mod heap;
pub mod interrupts;
pub mod pci;
pub mod shared;
