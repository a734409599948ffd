//! `tactus kernel list|fetch|bare|use`.

use std::fmt::Write;
use std::path::Path;

use tactus_environment::kernel;
use tactus_system::{Real, probe};

use crate::cli::KernelCommand;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

pub fn kernel(command: KernelCommand) -> Result<Exit, Failure> {
    match command {
        KernelCommand::List { arch, json } => list(arch.as_deref(), json),
        KernelCommand::Fetch { name, arch } => {
            let fetched = kernel::fetch(&Real, &name, &arch, &mut |step| say(step))?;
            output::text(&format!("{}\n", fetched.name))?;
            Ok(Exit::Good)
        }
        KernelCommand::Bare { out } => bare(&out),
        KernelCommand::Use { name } => {
            let chosen = kernel::use_(&Real, &name)?;
            say(format_args!(
                "guests ({}) boot {} unless the plan names another kernel",
                chosen.arch, chosen.name
            ));
            Ok(Exit::Good)
        }
    }
}

/// An entry of a boot loader's menu that starts the image.
const MENU: &str = r#"menuentry "tactus: how late this machine's own timer interrupts are" {
  serial --unit=0 --speed=115200
  multiboot2 /boot/tactus-bare-guest.elf interval=1ms duration=10m
}
"#;

fn bare(out: &Path) -> Result<Exit, Failure> {
    let image = probe::bare_guest().ok_or_else(|| {
        Failure::say(
            "this tactus was built without the guest",
            "build it where the Rust target is installed: rustup target add x86_64-unknown-none",
        )
    })?;
    output::file_at(out, image, 0o644).map_err(|error| {
        Failure::say(format!("{}: {error}", out.display()), "name a writable place with --out")
    })?;
    say(format_args!("wrote {} ({} KiB)", out.display(), image.len().div_ceil(1024)));
    say("GRUB starts it from /boot by this entry of /boot/grub/custom.cfg. Keep its output on COM1 (115200 \
            8n1) in a file, for `tactus convert`:");
    output::data(MENU)?;
    Ok(Exit::Good)
}

fn list(arch: Option<&str>, json: bool) -> Result<Exit, Failure> {
    let mut kernels = kernel::list(&Real)?;
    kernels.retain(|kernel| arch.is_none_or(|arch| kernel.arch == arch));
    if json {
        output::json(&kernels)?;
        return Ok(Exit::Good);
    }
    let mut text = String::new();
    for kernel in &kernels {
        let preemption = if kernel.preempt_rt { "PREEMPT_RT" } else { "standard" };
        let _ = writeln!(
            text,
            "{:<32} {preemption:<11} {:<8} {}",
            kernel.name,
            kernel.arch,
            kernel.path.display()
        );
    }
    if kernels.is_empty() {
        say("no guest kernel found");
        say("hint: `tactus kernel fetch rt` downloads one with the package manager");
    }
    output::text(&text)?;
    Ok(Exit::Good)
}
