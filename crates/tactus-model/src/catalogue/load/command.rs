//! `command`: a program.

use crate::catalogue::declare::word;

word! {
    /// Runs a program of the environment. It runs on the chosen CPUs unless it sets others itself, without input and
    /// without output. It is killed at the end with everything it started. If it ends earlier, the result says so. The
    /// load is refused if the environment does not have the program. Environments that tactus starts itself contain
    /// only the probe. A round is a tenth of a second that the program ran.
    #[derive(Default)]
    pub struct Command = Load "command": "a program of the environment (hackbench, stress-ng)" {
        /// The program and its arguments, for example `["stress-ng", "--malloc", "1"]`. The program must be in the
        /// environment. No shell reads them.
        pub run: Vec<String>;
    }
}
