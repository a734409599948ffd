//! The probe as a process: its messages to the process that starts it, and the traces that it leaves on this machine.
#![expect(clippy::disallowed_methods, reason = "these tests look at the machine from outside the door")]

mod blame;
mod block;
mod common;
mod comparison;
mod guardian;
mod kvm;
mod loads;
mod network;
mod protocol;
mod quiet;
mod settings;
mod values;
mod watch;
