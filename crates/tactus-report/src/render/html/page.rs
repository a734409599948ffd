//! What the template is given: every value as it is to be read.

use serde::Serialize;
use tactus_model::Evidence;
use tactus_model::bundle::Contents;
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::number::float;

use super::audits::{AuditBox, audit_anchor, audits};
use super::proofs::ProofRow;
use super::sections::{
    ControlRow, FactsOf, LargestRow, Notes, Section, SideBySide, controls, facts, largest, notes, sections,
    side_by_side,
};
use super::tables::TableBox;
use crate::analysis::{
    Figures, Line, caution, claims, comparison, conditions_by_id, headline, pages, proofs, tables,
};
use crate::figure::{Figure, Hover, of_page, requested, themed};
use crate::units::{
    NONE, clean, column, column_signed, count, duration, latency, places, relative, unbroken,
};

/// The whole page.
#[derive(Debug, Serialize)]
pub struct Page {
    title: String,
    plan: String,
    about: Option<String>,
    machine: Vec<(&'static str, String)>,
    interrupted: bool,
    headline: Vec<String>,
    evidence: Vec<(String, &'static str, &'static str)>,
    pages: Vec<PageBox>,
    table: Vec<TableRow>,
    cautions: Vec<&'static str>,
    has_references: bool,
    references: Vec<ReferenceRow>,
    verdicts: Vec<VerdictRow>,
    claims: Vec<ClaimBox>,
    tables: Vec<TableBox>,
    figures: Vec<Drawn>,
    sections: Vec<Section>,
    controls: Vec<ControlRow>,
    largest: Vec<LargestRow>,
    proofs: Vec<ProofRow>,
    proof_caution: Option<String>,
    audits: Vec<AuditBox>,
    notes: Vec<Notes>,
    side_by_side: SideBySide,
    facts: Vec<FactsOf>,
    plan_text: String,
    damage: Vec<String>,
    tactus: String,
    format: String,
    files: usize,
}

/// A figure as the page takes it.
#[derive(Debug, Serialize)]
pub struct Drawn {
    title: String,
    about: String,
    /// Made by this program; texts in it are escaped.
    svg: String,
    hover: Hover,
}

impl From<&Figure> for Drawn {
    fn from(figure: &Figure) -> Self {
        Self {
            title: figure.title.clone(),
            about: figure.about.clone(),
            svg: themed(&figure.svg()),
            hover: figure.hover.clone(),
        }
    }
}

/// A page of the document.
#[derive(Debug, Serialize)]
struct PageBox {
    title: String,
    words: Vec<String>,
    tables: Vec<TableBox>,
    figures: Vec<Drawn>,
}

/// A row of the comparison.
#[derive(Debug, Serialize)]
struct TableRow {
    name: String,
    /// What the audit found there, and where it stands.
    conditions: Option<(String, String)>,
    load: String,
    duration: String,
    evidence: Option<String>,
    kind: &'static str,
    status: &'static str,
    reason: Option<String>,
    /// min, mean, p50, p99, p99.9, max, overruns, cycles; empty when nothing was measured.
    values: Vec<String>,
    corrected: Option<[String; 4]>,
    published: Option<[String; 3]>,
    against: Option<AgainstRow>,
    lost: Option<String>,
    verdict: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct AgainstRow {
    name: String,
    values: Vec<(String, String)>,
    unlike: bool,
}

#[derive(Debug, Serialize)]
struct ReferenceRow {
    name: String,
    figure: &'static str,
    published: String,
    measured: String,
    evidence: Option<String>,
    kind: &'static str,
    source: String,
}

#[derive(Debug, Serialize)]
struct VerdictRow {
    name: String,
    outcome: &'static str,
    reason: String,
}

#[derive(Debug, Serialize)]
struct ClaimBox {
    name: String,
    claim: Option<String>,
    base: String,
    with: String,
    answer: String,
    shown: &'static str,
    sentences: Vec<String>,
    caution: Option<String>,
    intervals: Option<String>,
}

/// The class of a kind of evidence in the style sheet.
pub fn class(evidence: Option<Evidence>) -> &'static str {
    match evidence {
        Some(Evidence::BareMetal) => "bare",
        Some(Evidence::VirtualHost) => "virtual",
        Some(Evidence::Emulated) => "emulated",
        Some(Evidence::Imported) => "imported",
        None => "none",
    }
}

impl Page {
    /// The page of a bundle.
    pub fn of(contents: &Contents) -> Self {
        let manifest = &contents.manifest;
        let lines = comparison(contents);
        let mut kinds: Vec<Evidence> = lines.iter().filter_map(|line| line.evidence).collect();
        kinds.sort_by_key(ToString::to_string);
        kinds.dedup();
        let mut cautions: Vec<&str> =
            lines.iter().filter_map(|line| line.against.as_ref()?.caution).collect();
        cautions.sort_unstable();
        cautions.dedup();
        let places = places(lines.iter().filter_map(|line| line.figures.as_ref()?.min_ns.map(float)));
        let proofs = proofs(contents);
        Self {
            title: clean(contents.plan.title.as_deref().unwrap_or(&manifest.plan)),
            plan: clean(&manifest.plan),
            about: contents.plan.about.as_deref().map(|about| clean(about.trim())),
            machine: machine(contents),
            interrupted: manifest.status == RunStatus::Interrupted,
            headline: headline(contents).iter().map(|sentence| unbroken(&clean(sentence))).collect(),
            evidence: kinds
                .iter()
                .map(|kind| (kind.to_string(), class(Some(*kind)), kind.meaning()))
                .collect(),
            pages: page_boxes(contents),
            table: lines.iter().map(|line| table_row(contents, line, places)).collect(),
            cautions,
            has_references: lines.iter().any(|line| line.published.is_some()),
            references: lines.iter().flat_map(references).collect(),
            verdicts: lines.iter().filter_map(verdict).collect(),
            claims: claim_boxes(contents),
            tables: tables(contents).into_iter().map(TableBox::from).collect(),
            figures: requested(contents).iter().map(Drawn::from).collect(),
            sections: sections(contents),
            controls: controls(contents),
            largest: largest(contents),
            proofs: proofs.iter().map(ProofRow::from).collect(),
            proof_caution: caution(&proofs),
            audits: audits(contents),
            notes: notes(contents),
            side_by_side: side_by_side(contents),
            facts: facts(contents),
            plan_text: toml::to_string(&contents.plan)
                .unwrap_or_else(|error| format!("the plan cannot be shown: {error}")),
            damage: contents.damage.iter().map(|sentence| clean(sentence)).collect(),
            tactus: clean(&manifest.tactus),
            format: format!("{}.{}", manifest.format.major, manifest.format.minor),
            files: manifest.files.len(),
        }
    }
}

fn page_boxes(contents: &Contents) -> Vec<PageBox> {
    let page_box = |shows: crate::analysis::Shows| PageBox {
        title: clean(&shows.page.title),
        words: shows.page.words.iter().flat_map(|words| words.trim().lines()).map(clean).collect(),
        figures: of_page(contents, shows.page).iter().map(Drawn::from).collect(),
        tables: shows.tables.into_iter().map(TableBox::from).collect(),
    };
    pages(contents).into_iter().map(page_box).collect()
}

fn machine(contents: &Contents) -> Vec<(&'static str, String)> {
    let manifest = &contents.manifest;
    let machine = &manifest.machine;
    let ended = manifest.finished.clone().unwrap_or_else(|| "it did not end".into());
    let all = [
        ("Machine", machine.name.clone()),
        ("Processor", machine.processor.clone()),
        ("CPUs", machine.cpus.clone()),
        ("Kernel", machine.kernel.clone()),
        ("System", machine.system.clone()),
        ("Started", manifest.started.clone()),
        ("Ended", ended),
    ];
    all.into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name, clean(&value)))
        .collect()
}

const fn status(status: RowStatus) -> &'static str {
    match status {
        RowStatus::Measured => "measured",
        RowStatus::Skipped => "skipped",
        RowStatus::Failed => "failed",
    }
}

fn outcome(line: &Line) -> Option<&'static str> {
    use tactus_model::document::Outcome;
    line.verdict.as_ref().map(|verdict| match verdict.outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "fail",
        Outcome::Inconclusive => "inconclusive",
    })
}

fn table_row(contents: &Contents, line: &Line, places: usize) -> TableRow {
    let ns = |value: Option<u64>| column(value.map(float), places);
    let values = line.figures.as_ref().map(|all| {
        let six = Figures::from(all).each().map(|ns| column(*ns, places));
        six.into_iter().chain([count(all.overruns), count(all.cycles)]).collect()
    });
    let shown = |value: Option<u64>| value.map(|ns| column(Some(float(ns)), places)).unwrap_or_default();
    TableRow {
        name: clean(&line.name),
        conditions: conditions_by_id(contents, &line.place)
            .filter(|_| line.figures.is_some())
            .map(|sentence| (clean(&sentence), audit_anchor(&line.place))),
        load: clean(&line.load),
        duration: if line.measured_ns > 0 { unbroken(&duration(line.measured_ns)) } else { String::new() },
        evidence: line.evidence.map(|evidence| evidence.to_string()),
        kind: class(line.evidence),
        status: status(line.status),
        reason: line.reason.as_deref().map(clean),
        values: values.unwrap_or_default(),
        corrected: line.corrected().map(|c| [ns(c.p50_ns), ns(c.p99_ns), ns(c.p999_ns), count(c.count)]),
        published: line
            .published
            .as_ref()
            .filter(|_| line.figures.is_some())
            .map(|published| [shown(published.min_ns), shown(published.mean_ns), shown(published.max_ns)]),
        against: line.against.as_ref().map(|against| AgainstRow {
            name: clean(&against.name),
            values: against
                .figures
                .each()
                .map(|delta| {
                    let absolute = column_signed(delta.map(|delta| delta.absolute_ns), places);
                    (absolute, relative(delta.and_then(|delta| delta.relative)))
                })
                .to_vec(),
            unlike: against.caution.is_some(),
        }),
        lost: line.figures.as_ref().filter(|all| all.lost > 0).map(|all| count(all.lost)),
        verdict: outcome(line),
    }
}

fn references(line: &Line) -> Vec<ReferenceRow> {
    let Some(published) = &line.published else { return Vec::new() };
    let all = line.figures.as_ref();
    let three = [
        ("minimum", published.min_ns, all.and_then(|all| all.min_ns.map(float))),
        ("mean", published.mean_ns, all.and_then(|all| all.mean_ns)),
        ("maximum", published.max_ns, all.and_then(|all| all.max_ns.map(float))),
    ];
    let row = |(figure, theirs, ours): (&'static str, Option<u64>, Option<f64>)| {
        Some(ReferenceRow {
            name: clean(&line.name),
            figure,
            published: latency(float(theirs?)),
            measured: ours.map_or_else(|| NONE.into(), latency),
            evidence: line.evidence.map(|evidence| evidence.to_string()),
            kind: class(line.evidence),
            source: clean(&published.source),
        })
    };
    three.into_iter().filter_map(row).collect()
}

fn verdict(line: &Line) -> Option<VerdictRow> {
    let verdict = line.verdict.as_ref()?;
    Some(VerdictRow {
        name: clean(&line.name),
        outcome: outcome(line)?,
        reason: unbroken(&clean(&verdict.reason)),
    })
}

fn claim_boxes(contents: &Contents) -> Vec<ClaimBox> {
    let claim_box = |claim: crate::analysis::Claim| {
        let (answer, shown, sentences, caution, intervals) = match &claim.effect {
            Err(reason) => (format!("not answered: {}", clean(reason)), "open", Vec::new(), None, None),
            Ok(effect) => {
                let answer = effect.answer();
                let shown = match answer.as_str() {
                    "no effect shown" => "none",
                    text if text.starts_with("inconclusive") => "open",
                    _ => "effect",
                };
                let intervals =
                    format!("{} and {} intervals of time", effect.intervals.0, effect.intervals.1);
                let sentences =
                    effect.sentences().iter().map(|sentence| unbroken(&clean(sentence))).collect();
                (answer, shown, sentences, effect.caution.clone(), Some(intervals))
            }
        };
        ClaimBox {
            name: clean(&claim.name),
            claim: claim.claim.as_deref().map(clean),
            base: clean(&claim.base),
            with: clean(&claim.with),
            answer,
            shown,
            sentences,
            caution,
            intervals,
        }
    };
    claims(contents).into_iter().map(claim_box).collect()
}
