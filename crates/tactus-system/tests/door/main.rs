//! A system through a probe is a system: the same tests hold for this machine itself and for this
//! machine through a probe that runs on it. And what only the way through a probe can go wrong in.
#![expect(clippy::disallowed_methods, reason = "these tests look at the machine from outside the door")]

mod alike;
mod broken;
mod remote_probe;
