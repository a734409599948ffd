//! The kernel's command line, read as the kernel reads it (`parse_args` and `next_arg` of kernel/params.c and
//! lib/cmdline.c). Blanks separate parameters, double quotes protect blanks, and `-` and `_` are the same in names.
//! Words after ` -- ` are for the first process.

use crate::facts::Facts;

/// The parameters, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cmdline(Vec<Parameter>);

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name as it is written.
    pub name: String,
    /// The text after `=`, without quotes; `None` for a bare word.
    pub value: Option<String>,
}

impl Cmdline {
    /// The command line with which the system was booted; empty if it is unknown.
    #[must_use]
    pub fn of(facts: &Facts) -> Self {
        Self::parse(facts.text("/proc/cmdline").unwrap_or_default())
    }

    /// Reads a command line.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parameters = Vec::new();
        let mut rest = text.trim_start_matches(is_blank);
        while !rest.is_empty() {
            let (word, more) = split(rest);
            rest = more.trim_start_matches(is_blank);
            let parameter = read(word);
            if parameter.name == "--" && parameter.value.is_none() {
                break;
            }
            parameters.push(parameter);
        }
        Self(parameters)
    }

    /// All parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.0
    }

    /// Every occurrence of a parameter, in order; `Some("")` and `None` differ: `x=` and `x`.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = Option<&'a str>> + use<'a, 'n> {
        self.0.iter().filter(move |p| same(&p.name, name)).map(|p| p.value.as_deref())
    }

    /// The last value of a parameter; a bare word has none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).last().flatten()
    }

    /// Whether the parameter is there, bare or with any value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Whether the parameter is on: its last occurrence is bare, or says `1`, `y` or `on` as the
    /// kernel's `kstrtobool` takes them.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.all(name).last().is_some_and(|value| {
            value.is_none_or(|value| {
                let value = value.to_ascii_lowercase();
                value.starts_with(['1', 'y', 't']) || value.starts_with("on")
            })
        })
    }
}

/// The ASCII characters that the kernel's `isspace` accepts.
fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// The first word with its quotes, and the rest.
fn split(text: &str) -> (&str, &str) {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        if is_blank(c) && !quoted {
            return text.split_at(at);
        }
        quoted ^= c == '"';
    }
    (text, "")
}

fn read(word: &str) -> Parameter {
    // `"name=some value"` is quoted as a whole.
    let word = word.strip_prefix('"').map_or(word, |rest| rest.strip_suffix('"').unwrap_or(rest));
    match word.find('=') {
        // The kernel takes an `=` in front for part of the name.
        None | Some(0) => Parameter { name: word.into(), value: None },
        Some(at) => {
            let value = &word[at + 1..];
            let value = value.strip_prefix('"').map_or(value, |v| v.strip_suffix('"').unwrap_or(v));
            Parameter { name: word[..at].into(), value: Some(value.into()) }
        }
    }
}

/// Whether two names are the same to the kernel (`parameq`).
fn same(one: &str, other: &str) -> bool {
    let dashed = |byte: u8| if byte == b'-' { b'_' } else { byte };
    one.len() == other.len() && one.bytes().zip(other.bytes()).all(|(a, b)| dashed(a) == dashed(b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_value_holds_and_all_are_there() {
        let line = Cmdline::parse(
            "BOOT_IMAGE=/vmlinuz root=UUID=1 console=tty0 console=ttyS0,115200 isolcpus=managed_irq,domain,2-7 quiet\n",
        );
        assert_eq!(line.get("console"), Some("ttyS0,115200"));
        assert_eq!(line.all("console").flatten().collect::<Vec<_>>(), ["tty0", "ttyS0,115200"]);
        assert_eq!(line.get("root"), Some("UUID=1"));
        assert_eq!(line.get("isolcpus"), Some("managed_irq,domain,2-7"));
        assert!(line.has("quiet") && line.flag("quiet") && line.get("quiet").is_none());
        assert!(!line.has("nohz_full"));
    }

    #[test]
    fn dashes_and_underscores_are_the_same_in_names_only() {
        let line = Cmdline::parse("transparent-hugepage=never rcu_nocb_poll processor.max-cstate=1 a=b-c");
        assert_eq!(line.get("transparent_hugepage"), Some("never"));
        assert!(line.flag("rcu-nocb-poll"));
        assert_eq!(line.get("processor.max_cstate"), Some("1"));
        assert_eq!(line.get("a"), Some("b-c"));
    }

    #[test]
    fn quotes_protect_blanks() {
        let line = Cmdline::parse(r#"dyndbg="file a.c +p" "whole=one two" x=1 "bare word""#);
        assert_eq!(line.get("dyndbg"), Some("file a.c +p"));
        assert_eq!(line.get("whole"), Some("one two"));
        assert_eq!(line.get("x"), Some("1"));
        assert!(line.has("bare word"));
        assert_eq!(Cmdline::parse("open=\"never closed").get("open"), Some("never closed"));
    }

    #[test]
    fn what_is_for_the_first_process_is_not_for_the_kernel() {
        let line = Cmdline::parse("quiet -- nosmt isolcpus=1");
        assert!(line.has("quiet") && !line.has("nosmt") && !line.has("isolcpus"));
        assert!(Cmdline::parse("a--b -- c").has("a--b"));
    }

    #[test]
    fn a_flag_can_be_said_to_be_off() {
        let line = Cmdline::parse("a=0 b=1 c=off d=on e=N f=y g=force h h=0");
        let on: Vec<_> =
            ["a", "b", "c", "d", "e", "f", "g", "h"].into_iter().filter(|n| line.flag(n)).collect();
        assert_eq!(on, ["b", "d", "f"]);
        assert!(line.has("g"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "([a-z\"=_ \t-]|é|--){0,60}") {
            let line = Cmdline::parse(&text);
            for parameter in line.parameters() {
                prop_assert!(line.has(&parameter.name));
            }
            prop_assert_eq!(Cmdline::parse(&text), line);
        }

        #[test]
        fn ordinary_parameters_are_read_back(pairs in proptest::collection::vec(("[a-z][a-z_.0-9]{0,9}", "[a-z0-9,=-]{0,9}"), 0..12)) {
            let text = pairs.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" ");
            let line = Cmdline::parse(&text);
            let read: Vec<_> =
                line.parameters().iter().map(|p| (p.name.clone(), p.value.clone().unwrap())).collect();
            prop_assert_eq!(read, pairs);
        }
    }
}
