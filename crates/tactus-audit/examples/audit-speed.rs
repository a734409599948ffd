//! Audits recorded facts again and again and prints what one audit takes, as JSON.
//!
//! `cargo run --release --example audit-speed -- FACTS.json[.gz] [ROUNDS]`, for `scripts/bench/audit.py`.
#![expect(clippy::print_stdout, reason = "an example says what it found")]
#![expect(clippy::disallowed_methods, reason = "a tool of the developers, not a part of tactus")]

use std::error::Error;
use std::io::Read;
use std::time::Instant;

use tactus_audit::{Intent, Subject, audit};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let path = words.next().ok_or("a file of facts")?;
    let rounds: usize = words.next().map_or(Ok(20), |text| text.parse())?;
    let bytes = std::fs::read(&path)?;
    let mut json = Vec::new();
    if path.ends_with(".gz") {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut json)?;
    } else {
        json = bytes;
    }
    let facts: Facts = serde_json::from_slice(&json)?;
    let intent = Intent::default();
    let mut times = Vec::new();
    let mut found = 0;
    for _ in 0..rounds {
        let began = Instant::now();
        found = audit(&Subject::new(&facts, Role::Host, &intent)).found().count();
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    println!("{{\"readings\": {}, \"found\": {found}, \"median_ms\": {median:.3}}}", facts.0.len());
    Ok(())
}
