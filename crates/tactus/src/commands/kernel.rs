//! `tactus kernel list|fetch|use`.

use std::fmt::Write;

use tactus_host::kernel;
use tactus_host::system::Real;

use crate::cli::KernelCommand;
use crate::exit::{Exit, Failure};
use crate::output;

pub fn kernel(command: KernelCommand) -> Result<Exit, Failure> {
    match command {
        KernelCommand::List { json } => list(json),
        KernelCommand::Fetch { name } => {
            let fetched = kernel::fetch(&Real, &name, &mut |step| eprintln!("{step}"))?;
            output::data(&format!("{}\n", fetched.name))?;
            Ok(Exit::Good)
        }
        KernelCommand::Use { name } => {
            let chosen = kernel::use_(&Real, &name)?;
            eprintln!("guests boot {} when the plan does not say", chosen.name);
            Ok(Exit::Good)
        }
    }
}

fn list(json: bool) -> Result<Exit, Failure> {
    let kernels = kernel::list(&Real);
    if json {
        output::json(&kernels)?;
        return Ok(Exit::Good);
    }
    let mut text = String::new();
    for kernel in &kernels {
        let preemption = if kernel.preempt_rt { "PREEMPT_RT" } else { "standard" };
        let _ = writeln!(text, "{:<32} {preemption:<11} {}", kernel.name, kernel.path.display());
    }
    if kernels.is_empty() {
        eprintln!("no guest kernel found");
        eprintln!("hint: `tactus kernel fetch rt` downloads one with the package manager");
    }
    output::data(&text)?;
    Ok(Exit::Good)
}
