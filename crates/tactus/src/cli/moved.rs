//! Names that commands had once, and the ones that they have.

/// A name, and what is typed instead.
const MOVED: &[(&str, &str)] = &[
    ("attach", "tactus watch [BUNDLE]"),
    ("collect", "tactus fleet collect BUNDLE... --into DATA"),
    ("export", "tactus convert BUNDLE --to FORMAT"),
    ("fitness", "tactus report [BUNDLE] --class all"),
    ("generate", "tactus tune files WHAT"),
    ("import", "tactus convert FILE..."),
    ("serve", "tactus watch --serve [DIR]"),
    ("show", "tactus report [BUNDLE]"),
    ("stop", "tactus watch --stop [BUNDLE]"),
];

/// The present name of a renamed command; none: it never was a command.
pub fn moved(name: &str) -> Option<&'static str> {
    MOVED.iter().find(|(was, _)| *was == name).map(|(_, is)| *is)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn what_is_typed_instead_begins_with_a_command_that_there_is() {
        let cli = Cli::command();
        for (was, is) in MOVED {
            assert!(cli.find_subcommand(was).is_none(), "{was} is a command");
            let name = is.split(' ').nth(1).unwrap();
            assert!(cli.find_subcommand(name).is_some(), "{is}");
        }
        assert_eq!(moved("report"), None);
    }
}
