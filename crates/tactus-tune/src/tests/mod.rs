//! Whatever happens, a system is as it was after it was taken back.

mod damaged;
mod kernel;
mod reboot;
mod transaction;
