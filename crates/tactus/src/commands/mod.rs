//! One file per command.

mod attach;
mod audit;
mod baseline;
mod collect;
mod compare;
mod completions;
mod cyclictest;
mod detach;
mod drop_in;
mod environments;
mod execute;
mod explain;
mod export;
mod facts;
mod fitness;
mod fleet;
mod follow;
mod generate;
mod import;
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
mod serve;
mod show;
mod stop;
mod tune;

use crate::cli::Command;
use crate::exit::{Exit, Failure};

/// Does what the command line says.
pub fn dispatch(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(arguments) if arguments.detach.detach => detach::detach(arguments.place()),
        Command::Run(arguments) => run::run(&arguments),
        Command::Measure(arguments) if arguments.detach.detach => detach::detach(arguments.out.as_deref()),
        Command::Measure(arguments) => measure::measure(&arguments),
        Command::Cyclictest(arguments) => cyclictest::cyclictest(&arguments),
        Command::Oslat(arguments) => oslat::oslat(&arguments),
        Command::Prove(arguments) => prove::prove(&arguments),
        Command::Audit(arguments) => audit::audit(&arguments),
        Command::Tune(arguments) => tune::tune(&arguments.what),
        Command::Generate(arguments) => generate::generate(&arguments),
        Command::Show(arguments) => show::show(&arguments),
        Command::Attach(arguments) => attach::attach(&arguments),
        Command::Stop(arguments) => stop::stop(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Serve(arguments) => serve::serve(&arguments),
        Command::Fleet(arguments) => fleet::fleet(&arguments.what),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Fitness(arguments) => fitness::fitness(&arguments),
        Command::Import(arguments) => import::import(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::Collect(arguments) => collect::collect(&arguments),
        Command::Environments(arguments) => environments::environments(&arguments),
        Command::Kernel(arguments) => kernel::kernel(arguments.what),
        Command::Probe(arguments) => probe::probe(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Completions(arguments) => completions::completions(&arguments),
        Command::Man(arguments) => man::man(&arguments),
    }
}
