//! Words for people, on stderr. Nobody may be listening any more: a guardian outlives the run that
//! holds the other end, and a panic over a closed pipe would keep it from its work.

/// As `eprintln!`, but a stderr that is closed is no error.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

pub(crate) use say;
