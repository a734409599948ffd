//! `tactus kernel list|fetch|use`.

use std::fmt::Write;

use tactus_environment::kernel;
use tactus_system::Real;

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
        KernelCommand::Use { name } => {
            let chosen = kernel::use_(&Real, &name)?;
            say(format_args!("guests ({}) boot {} when the plan does not say", chosen.arch, chosen.name));
            Ok(Exit::Good)
        }
    }
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
