//! One file per command.

mod audit;
mod baseline;
mod compare;
mod completions;
mod convert;
mod cyclictest;
mod detach;
mod drop_in;
mod environments;
mod execute;
mod explain;
mod facts;
mod fleet;
mod kernel;
mod lock;
mod man;
mod measure;
mod needs;
mod only;
mod oslat;
mod probe;
mod prove;
mod report;
mod run;
mod seed;
mod tune;
mod watch;
mod written_as;

use crate::cli::Command;
use crate::exit::{Exit, Failure};

/// Does what the command line says.
pub fn dispatch(command: Command, verbose: bool) -> Result<Exit, Failure> {
    match command {
        Command::Run(arguments) if arguments.detach.detach => detach::detach(arguments.place()),
        Command::Run(arguments) => run::run(&arguments, verbose),
        Command::Measure(arguments) if arguments.detach.detach => detach::detach(arguments.out.as_deref()),
        Command::Measure(arguments) => measure::measure(&arguments),
        Command::Cyclictest(arguments) => cyclictest::cyclictest(&arguments),
        Command::Oslat(arguments) => oslat::oslat(&arguments),
        Command::Prove(arguments) => prove::prove(&arguments),
        Command::Audit(arguments) => audit::audit(&arguments),
        Command::Tune(arguments) => tune::tune(&arguments.what),
        Command::Report(arguments) => report::report(&arguments),
        Command::Watch(arguments) => watch::watch(&arguments),
        Command::Convert(arguments) => convert::convert(&arguments),
        Command::Fleet(arguments) => fleet::fleet(&arguments.what),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Environments(arguments) => environments::environments(&arguments),
        Command::Kernel(arguments) => kernel::kernel(arguments.what),
        Command::Probe(arguments) => probe::probe(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Man(arguments) => man::man(&arguments),
    }
}
