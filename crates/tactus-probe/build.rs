//! Links the probe without unwind tables where it never unwinds: in the profile `probe`, not in its
//! tests.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=small.ld");
    // Cargo tells a build script no custom profile's name, but puts it into its path.
    let profile = var("OUT_DIR").is_ok_and(|path| path.contains("/probe/build/"));
    if profile && var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "musl") {
        println!("cargo::rustc-link-arg-bins=-T{}/small.ld", env!("CARGO_MANIFEST_DIR"));
        println!("cargo::rustc-link-arg-bins=--no-eh-frame-hdr");
    }
}
