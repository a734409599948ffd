//! Whatever happens, a system is as it was after it was taken back.

mod damaged;
mod kernel;
mod lots;
mod persist;
mod reboot;
mod transaction;
