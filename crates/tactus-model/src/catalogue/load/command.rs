//! `command`: a program.

use crate::catalogue::declare::word;

word! {
    /// Runs a program that the environment has, on the chosen CPUs unless it sets others itself, without input
    /// and without output. It is killed at the end with everything it started; that it ended before is
    /// reported. Refused where there is no such program: what tactus starts itself holds the probe alone. A
    /// round is a tenth of a second that it ran.
    #[derive(Default)]
    pub struct Command = Load "command": "a program of the environment (hackbench, stress-ng)" {
        /// The program and its arguments, as the environment has them: `["stress-ng", "--malloc", "1"]`. No
        /// shell reads them.
        pub run: Vec<String>;
    }
}
