//! The command from end to end, on this machine.

mod audit;
mod blocked;
mod command;
mod common;
mod endings;
mod foreign;
mod guest;
mod hold;
mod nested;
mod prove;
mod run;
mod study;
mod tune;
mod twelve;
mod unproven;
