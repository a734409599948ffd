//! The command on each machine: `tactus fleet job`, which is safe to repeat, for every engine.

use crate::name::quoted;
use crate::order::Order;

/// How long a job waits for another measurement of its machine.
const BUSY: &str = "1h";

/// Where a job finds and leaves what.
pub struct Places<'a> {
    pub plan: &'a str,
    pub bundle: &'a str,
    /// Where the bundle is once it has been brought home and verified, if a job can see that.
    pub home: Option<&'a str>,
    /// Where the bundle goes as one file, when it is finished.
    pub archive: Option<&'a str>,
}

/// The words of the job.
pub fn job(order: &Order, program: &str, places: &Places<'_>) -> Vec<String> {
    let mut words: Vec<String> =
        [program, "fleet", "job", "--plan", places.plan, "--bundle", places.bundle].map(str::to_owned).into();
    for (option, value) in [("--home", places.home), ("--archive", places.archive)] {
        words.extend(value.iter().flat_map(|value| [option.to_owned(), (*value).to_owned()]));
    }
    // A plan can have commands, and others may be able to write where it lies.
    words.extend(["--plan-sha256".into(), order.plan_sha256.clone()]);
    words.extend(["--wait".into(), order.option("busy").unwrap_or(BUSY).to_owned()]);
    if !order.arguments.is_empty() {
        words.push("--".into());
        words.extend(order.arguments.iter().cloned());
    }
    words
}

/// The same as a line of a shell script.
pub fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}
