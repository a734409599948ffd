//! Builds the probe for every architecture, and the guest without an operating system, and puts them where `lib.rs` embeds
//! them.
//!
//! `TACTUS_PROBE_DIR` names a directory with ready-built ones instead: `<target>/<package>`, as `cargo build --target`
//! leaves them below `target/<target>/probe`.
#![expect(clippy::disallowed_methods, reason = "a build script runs before there is a door")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROFILE: &str = "probe";

/// What is embedded: the package, the target that it is built for, and the name of its bytes.
const IMAGES: [(&str, &str, &str); 3] = [
    ("tactus-probe", "x86_64-unknown-linux-musl", "tactus-probe-x86_64"),
    ("tactus-probe", "aarch64-unknown-linux-musl", "tactus-probe-aarch64"),
    ("tactus-bare-guest", "x86_64-unknown-none", "tactus-bare-guest"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    println!("cargo::rerun-if-env-changed=TACTUS_PROBE_DIR");
    for path in [
        "crates/tactus-probe",
        "crates/tactus-facts",
        "crates/tactus-measure",
        "crates/tactus-application/src",
        "crates/tactus-application/Cargo.toml",
        "crates/tactus-bare-guest",
        "crates/tactus-model/src",
        "crates/tactus-model/Cargo.toml",
        "Cargo.toml",
        ".cargo",
    ] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    let ready = env::var_os("TACTUS_PROBE_DIR").map(PathBuf::from);
    let own = format!("{}-unknown-linux-musl", env::var("CARGO_CFG_TARGET_ARCH")?);
    for (package, target, name) in IMAGES {
        let image = match &ready {
            Some(dir) => {
                let path = dir.join(target).join(package);
                println!("cargo::rerun-if-changed={}", path.display());
                fs::read(&path).map_err(|error| format!("TACTUS_PROBE_DIR: {}: {error}", path.display()))
            }
            None => build(&root, &out, package, target),
        };
        let to = out.join(name);
        match image {
            Ok(bytes) => fs::write(&to, bytes)?,
            // The machine's own probe measures, and stands guard: nothing works without it.
            Err(reason) if target == own => return Err(reason.into()),
            Err(reason) => {
                let reason = reason.lines().next().unwrap_or_default();
                println!("cargo::warning=built without {package} for {target}: {reason}");
                fs::write(&to, [])?;
            }
        }
    }
    Ok(())
}

/// Builds a package for a target and returns its bytes.
fn build(root: &Path, out: &Path, package: &str, target: &str) -> Result<Vec<u8>, String> {
    if !has_target(target) {
        return Err(format!("the Rust target is missing: rustup target add {target}"));
    }
    // A directory of its own: the outer cargo holds the lock of the usual one.
    let dir = out.join("probe");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["build", "-p", package, "--profile", PROFILE, "--target", target]);
    cargo.arg("--target-dir").arg(&dir);
    // The outer build's settings (flags, clippy as the compiler, coverage, its jobserver) are not this one's.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let kept = ["CARGO_HOME", "CARGO_NET_OFFLINE", "CARGO_HTTP_PROXY", "CARGO_HTTP_CAINFO"]
            .contains(&&*text)
            || text.starts_with("CARGO_REGISTRIES_");
        let foreign = (text.starts_with("CARGO") && !kept)
            || (text.starts_with("RUST") && !text.starts_with("RUSTUP"))
            || ["MAKEFLAGS", "MFLAGS", "TARGET", "HOST", "OUT_DIR", "PROFILE", "OPT_LEVEL", "DEBUG"]
                .contains(&&*text);
        if foreign {
            cargo.env_remove(&name);
        }
    }
    let output = cargo.output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{package} does not build for {target}:\n{}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let path = dir.join(target).join(PROFILE).join(package);
    fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Whether the compiler has the standard library of a target.
fn has_target(target: &str) -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "target-libdir", "--target", target]).output();
    output.is_ok_and(|output| {
        let dir = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
    })
}
