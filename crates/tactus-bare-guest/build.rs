//! Links the image where a hypervisor loads it.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo::rerun-if-changed=image.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        println!("cargo::rustc-link-arg-bins=-T{here}/image.ld");
        // The file is never mapped: its parts need not begin at page boundaries.
        println!("cargo::rustc-link-arg-bins=--nmagic");
    }
}
