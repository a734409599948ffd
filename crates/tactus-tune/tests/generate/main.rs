//! Generated files, tried with the tools that they are for: libvirt's schema and its QEMU driver, QEMU, Podman,
//! TuneD, Nova, GRUB and validators of Kubernetes. A missing tool is skipped aloud; where `TACTUS_TEST_ALL` is set
//! (as CI does) that is a failure.
#![expect(clippy::disallowed_methods, reason = "these tests run the tools that a user would run")]

mod boot;
mod clusters;
mod common;
mod containers;
mod domains;
mod dropins;
mod guests;
mod openstack;
mod tuned;
