//! The text of a plan: any text gives a plan or an error that names a line of it, and a plan that was
//! read can be written and read again (a bundle keeps it).

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::{Corpus, fuzz_target};
use tactus_run::plan::{Source, parse};

fuzz_target!(|text: &str| -> Corpus {
    let source = Source::new("plan.toml", text);
    match parse(&source) {
        Ok(plan) => {
            let written = toml::to_string(&plan).expect("a plan can be written");
            let again = parse(&Source::new("again.toml", written.clone()));
            assert_eq!(again.as_ref(), Ok(&plan), "{written}");
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            if let Some(line) = error.line {
                // The end of a text that ends in a newline is the line behind it.
                assert!(line >= 1 && line <= text.matches('\n').count() + 1, "line {line}");
            }
        }
    }
    Corpus::Keep
});
