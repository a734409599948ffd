//! Renders the written fixtures in every format into a directory, to be looked at:
//! `cargo run -p tactus-report --example gallery -- /tmp/gallery`.
#![expect(clippy::print_stdout, reason = "an example says what it found")]
#![expect(clippy::disallowed_methods, reason = "a tool of the developers, not a part of tactus")]

#[path = "../tests/report/common/mod.rs"]
#[expect(dead_code, reason = "what the tests have in common is more than the gallery shows")]
mod common;

use std::path::PathBuf;

use tactus_report::render::FORMATS;
use tactus_report::render::text::{Style, render};

type Fixture = (&'static str, fn() -> tactus_model::bundle::Contents);

const FIXTURES: &[Fixture] = &[
    ("machine", common::this_machine),
    ("study", common::study),
    ("interrupted", common::interrupted),
    ("hostile", common::hostile),
    ("empty", common::empty),
    ("day", common::day),
    ("overheads", common::overheads),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(out) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err("name a directory".into());
    };
    std::fs::create_dir_all(&out)?;
    for (name, fixture) in FIXTURES {
        let contents = fixture();
        for format in FORMATS {
            let path = out.join(format!("{name}.{}", format.name));
            let begun = std::time::Instant::now();
            let bytes = (format.render)(&contents)?;
            println!("{}: {} bytes, {:?}", path.display(), bytes.len(), begun.elapsed());
            std::fs::write(&path, bytes)?;
        }
        for width in [60, 80, 140] {
            let text = render(&contents, Style { colour: false, width });
            std::fs::write(out.join(format!("{name}-{width}.text")), text)?;
        }
    }
    Ok(())
}
