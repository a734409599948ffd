//! Logs of HdrHistogram: the intervals of a scenario's log, and the counts since its last interval.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::SystemTime;

use tactus_model::buckets::value_of;
use tactus_model::histograms::Place;
use tactus_model::latency::histogram;
use tactus_model::text::clean;

use super::{Export, ExportError, Measured, Options, Out, Shape, Source, of_each};
use crate::hlog::{header, line};

/// The entry.
pub static ENTRY: Export = Export {
    name: "hlog",
    about: "logs of HdrHistogram (interval log 1.3, values in ns), a file for each scenario, a tag for each series",
    ending: "hlog",
    shape: Shape::Scenario(write),
    cannot: "missed periods, verdicts, tail bounds, findings, exact extremes; a comment contains the \
        evidence",
    notes: |source, _| {
        of_each(source.latencies(), |one| {
            let overruns = one.entry.all.as_ref().map_or(0, tactus_model::latency::Summary::missed);
            (overruns > 0).then(|| {
                format!(
                    "the {overruns} periods that late wake-ups missed are not in the log, which contains \
                    what was measured"
                )
            })
        })
    },
};

fn write(source: &Source<'_>, one: Measured<'_>, _: Options, mut out: Out<'_>) -> Result<(), ExportError> {
    let started = one.row.result.started.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let header = header(started.map(SystemTime::from));
    let (first, rest) = header.split_once('\n').unwrap_or((&header, ""));
    let evidence =
        one.entry.evidence.map_or_else(|| "unknown".to_owned(), |evidence| evidence.key().to_owned());
    let name = clean(&one.entry.name);
    write!(out, "{first}\n#[Scenario: {name}; evidence: {evidence}]\n{rest}")?;
    // Counts of a series that the bundle has and the log lacks were made after the log's last line.
    let mut left: BTreeMap<&str, BTreeMap<u64, u64>> = BTreeMap::new();
    for (tag, counts) in &one.row.histograms.series {
        left.insert(tag, counts.buckets().collect());
    }
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    source.logs.intervals(one.number - 1, &mut |tag, place, counts| {
        let mut counted = histogram();
        let mut open = left.get_mut(tag);
        for (bucket, count) in counts {
            let value = value_of(*bucket);
            counted.saturating_record_n(value, *count);
            if let Some(left) = open.as_mut().and_then(|open| open.get_mut(&value)) {
                *left = left.saturating_sub(*count);
            }
        }
        let end = ends.entry(tag.to_owned()).or_default();
        *end = place.end_ns().max(*end);
        out.write_all(line(tag, place, &counted)?.as_bytes())
    })?;
    for (tag, counts) in left {
        let mut counted = histogram();
        counts.into_iter().for_each(|(value, count)| counted.saturating_record_n(value, count));
        if !counted.is_empty() {
            let start_ns = ends.get(tag).copied().unwrap_or(0);
            let end_ns = one.row.histograms.end_ns.max(one.row.result.measured_ns);
            let place = Place { start_ns, length_ns: end_ns.saturating_sub(start_ns) };
            out.write_all(line(tag, place, &counted)?.as_bytes())?;
        }
    }
    Ok(out.flush()?)
}
