//! Messages for people, on stderr. Its reader may be gone: a guardian may still run after the end of its run, and a
//! panic over a closed pipe would stop it.

/// As `eprintln!`, but a closed stderr is not an error.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

pub(crate) use say;
