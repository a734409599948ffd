//! Table, claims and notes as Markdown (the dialect of GitHub and GitLab).

use std::fmt::Write;

use tactus_model::bundle::Contents;
use tactus_model::document::Outcome;
use tactus_model::event::RowStatus;
use tactus_model::message::NoteKind;
use tactus_model::number::float;

use crate::analysis::{
    Answer, Cell, Claim, Figures, Line, Table, caution, claims, comparison, conditions, controls, headline,
    pages, proofs, remarks, tables,
};
use crate::units::{NONE, clean, column, column_signed, count, latency, places, relative};

/// What a bundle says, to be pasted into a README, an issue or a pull request.
#[must_use]
pub fn render(contents: &Contents) -> String {
    let mut out = String::new();
    let lines = comparison(contents);
    let title = contents.plan.title.as_deref().unwrap_or(&contents.manifest.plan);
    let _ = writeln!(out, "## {}\n", text(title));
    let manifest = &contents.manifest;
    let machine = &manifest.machine;
    let about = [&machine.name, &machine.processor, &machine.system, &machine.kernel, &manifest.started];
    let about: Vec<String> =
        about.into_iter().filter(|part| !part.is_empty()).map(|part| text(part)).collect();
    let _ = writeln!(out, "{} · tactus {}\n", about.join(" · "), text(&manifest.tactus));
    for sentence in headline(contents) {
        let _ = writeln!(out, "- {}", text(&sentence));
    }
    paged(&mut out, contents);
    table(&mut out, &lines);
    asked_tables(&mut out, contents);
    evidence(&mut out, &lines);
    published(&mut out, &lines);
    verdicts(&mut out, &lines);
    for claim in claims(contents) {
        claimed(&mut out, &claim);
    }
    proven(&mut out, contents);
    let _ = writeln!(out, "\n### Controls\n");
    for (_, sentence) in controls(contents) {
        let _ = writeln!(out, "- {}", text(&sentence));
    }
    audited(&mut out, contents);
    notes(&mut out, contents);
    out
}

/// What each setting under test is worth.
fn proven(out: &mut String, contents: &Contents) {
    let proofs = proofs(contents);
    if proofs.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n### What each setting is worth\n\n| setting | where | pairs | p99 | p99.9 | maximum |\n|---|---|--:|---|---|---|"
    );
    for proven in &proofs {
        let evidence = proven.evidence.map(|evidence| format!(", {evidence}")).unwrap_or_default();
        let place = format!("{}{evidence}", proven.environment);
        let _ = write!(out, "| {} | {} | {} ", text(&proven.setting), text(&place), proven.pairs.0);
        match &proven.answer {
            Answer::None(reason) => {
                let _ = writeln!(out, "| not tested: {} | | |", text(reason));
            }
            Answer::Effects(effects) => {
                for worth in effects {
                    let _ = write!(out, "| {} ", text(&worth.words()));
                }
                let _ = writeln!(out, "|");
            }
        }
    }
    if let Some(caution) = caution(&proofs) {
        let _ = writeln!(out, "\n{}", text(&caution));
    }
}

/// What the audit found where it was measured.
fn audited(out: &mut String, contents: &Contents) {
    for (environment, audit) in &contents.audits {
        let Some(sentence) = conditions(contents, environment) else { continue };
        let _ = writeln!(out, "\n### Audit of {}\n\nMeasured with {}.", text(environment), text(&sentence));
        if audit.found().next().is_some() {
            let _ = writeln!(out, "\n| severity | check | what |\n|---|---|---|");
        }
        for finding in audit.found() {
            let _ =
                writeln!(out, "| {} | {} | {} |", finding.severity, text(&finding.id), text(&finding.said));
        }
    }
}

/// The tables that the plan asks for.
fn asked_tables(out: &mut String, contents: &Contents) {
    for table in tables(contents) {
        asked_table(out, &table, "###");
    }
}

/// The document page by page.
fn paged(out: &mut String, contents: &Contents) {
    for shows in pages(contents) {
        let _ = writeln!(out, "\n### {}", text(&shows.page.title));
        if let Some(words) = &shows.page.words {
            let _ = writeln!(out);
            for line in words.trim().lines() {
                let _ = writeln!(out, "> {}  ", text(line));
            }
        }
        for table in &shows.tables {
            asked_table(out, table, "####");
        }
    }
}

fn asked_table(out: &mut String, table: &Table, level: &str) {
    {
        if !table.title.is_empty() {
            let _ = writeln!(out, "\n{level} {}", text(&table.title));
        }
        if !table.rows.is_empty() {
            let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
            let head = table.head.iter().map(|name| text(name)).collect();
            let _ = writeln!(out, "\n{}\n|{}", line(head), "---|".repeat(table.head.len()));
            for cells in &table.rows {
                let cell =
                    |cell: &Cell| cell.lines.iter().map(|line| text(line)).collect::<Vec<_>>().join("<br>");
                let _ = writeln!(out, "{}", line(cells.iter().map(cell).collect()));
            }
        }
        for remark in &table.remarks {
            let _ = writeln!(out, "\n{}", text(remark));
        }
    }
}

fn table(out: &mut String, lines: &[Line]) {
    let figures = || lines.iter().filter_map(|line| line.figures.as_ref());
    let places = places(figures().filter_map(|all| all.min_ns.map(float)));
    let _ = writeln!(
        out,
        "\nLatencies in us.\n\n| scenario | evidence | min | mean | p50 | p99 | p99.9 | max | overruns | cycles |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for line in lines {
        let evidence = line.evidence.map_or_else(|| NONE.into(), |evidence| evidence.to_string());
        let Some(all) = &line.figures else {
            let word = if line.status == RowStatus::Failed { "failed" } else { "skipped" };
            let reason = text(line.reason.as_deref().unwrap_or("no reason was kept"));
            let _ = writeln!(out, "| {} | {evidence} | {word}: {reason} | | | | | | | |", text(&line.name));
            continue;
        };
        let six: Vec<String> = Figures::from(all).each().iter().map(|ns| column(**ns, places)).collect();
        let _ = writeln!(
            out,
            "| {} | {evidence} | {} | {} | {} |",
            text(&line.name),
            six.join(" | "),
            count(all.overruns),
            count(all.cycles)
        );
        if let Some(corrected) = line.corrected() {
            let ns = |value: Option<u64>| column(value.map(float), places);
            let _ = writeln!(
                out,
                "| *with swallowed periods* | | | | {} | {} | {} | | | {} |",
                ns(corrected.p50_ns),
                ns(corrected.p99_ns),
                ns(corrected.p999_ns),
                count(corrected.count)
            );
        }
        if let Some(against) = &line.against {
            let six: Vec<String> = against
                .figures
                .each()
                .iter()
                .map(|delta| match delta {
                    None => NONE.into(),
                    Some(delta) => {
                        format!(
                            "{} ({})",
                            column_signed(Some(delta.absolute_ns), places),
                            relative(delta.relative)
                        )
                    }
                })
                .collect();
            let _ = writeln!(out, "| *against {}* | | {} | | |", text(&against.name), six.join(" | "));
        }
        if let Some(reason) = &line.reason {
            let _ = writeln!(out, "| *{}* | | | | | | | | | |", text(reason));
        }
    }
    let mut cautions: Vec<&str> = lines.iter().filter_map(|line| line.against.as_ref()?.caution).collect();
    cautions.dedup();
    for caution in cautions {
        let _ = writeln!(out, "\n> {}", text(caution));
    }
}

fn evidence(out: &mut String, lines: &[Line]) {
    let mut kinds: Vec<tactus_model::Evidence> = lines.iter().filter_map(|line| line.evidence).collect();
    kinds.dedup();
    kinds.sort_by_key(ToString::to_string);
    kinds.dedup();
    let _ = writeln!(out);
    for kind in kinds {
        let _ = writeln!(out, "- **{kind}**: {}", kind.meaning());
    }
}

fn published(out: &mut String, lines: &[Line]) {
    let with: Vec<&Line> = lines.iter().filter(|line| line.published.is_some()).collect();
    if with.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n### Published and measured here\n\n| scenario | figure | published | measured | source |\n|---|---|--:|--:|---|"
    );
    for line in with {
        let Some(published) = &line.published else { continue };
        let all = line.figures.as_ref();
        let figures = [
            ("minimum", published.min_ns, all.and_then(|all| all.min_ns)),
            ("mean", published.mean_ns, all.and_then(tactus_model::latency::Summary::mean_rounded)),
            ("maximum", published.max_ns, all.and_then(|all| all.max_ns)),
        ];
        for (name, theirs, ours) in figures {
            let Some(theirs) = theirs else { continue };
            let evidence = line.evidence.map(|evidence| format!(" ({evidence})")).unwrap_or_default();
            let ours = ours.map_or_else(|| NONE.into(), |ns| latency(float(ns)) + &evidence);
            let (scenario, source) = (text(&line.name), text(&published.source));
            let _ = writeln!(out, "| {scenario} | {name} | {} | {ours} | {source} |", latency(float(theirs)));
        }
    }
}

fn verdicts(out: &mut String, lines: &[Line]) {
    let with = || lines.iter().filter_map(|line| Some((line, line.verdict.as_ref()?)));
    if with().next().is_none() {
        return;
    }
    let _ = writeln!(out, "\n### Requirements\n");
    for (line, verdict) in with() {
        let word = match verdict.outcome {
            Outcome::Pass => "pass",
            Outcome::Fail => "FAIL",
            Outcome::Inconclusive => "inconclusive",
        };
        let _ = writeln!(out, "- **{word}** {}: {}", text(&line.name), text(&verdict.reason));
    }
}

fn claimed(out: &mut String, claim: &Claim) {
    let _ = writeln!(out, "\n### {}\n", text(&claim.name));
    if let Some(words) = &claim.claim {
        let _ = writeln!(out, "> {}\n", text(words));
    }
    match &claim.effect {
        Err(reason) => {
            let _ = writeln!(out, "Not answered: {}", text(reason));
        }
        Ok(effect) => {
            let _ = writeln!(
                out,
                "{} against {}: **{}**.",
                text(&claim.with),
                text(&claim.base),
                effect.answer()
            );
            if let Some(caution) = &effect.caution {
                let _ = writeln!(out, "{}", text(caution));
            }
            let _ = writeln!(out);
            for sentence in effect.sentences() {
                let _ = writeln!(out, "- {}", text(&sentence));
            }
        }
    }
}

fn notes(out: &mut String, contents: &Contents) {
    let kinds = [
        (NoteKind::Obstacle, "Obstacles"),
        (NoteKind::SideEffect, "What measuring changed"),
        (NoteKind::Info, "Notes"),
    ];
    for (kind, title) in kinds {
        let remarks = remarks(contents, kind);
        if remarks.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n### {title}\n");
        for remark in remarks {
            let places = if remark.environments.is_empty() {
                String::new()
            } else {
                format!(" ({})", text(&remark.environments.join(", ")))
            };
            let hint = remark.note.hint.as_deref().map(|hint| format!(" {}", text(hint))).unwrap_or_default();
            let _ = writeln!(out, "- {}{places}{hint}", text(&remark.note.text));
        }
    }
    if !contents.damage.is_empty() {
        let _ = writeln!(out, "\n### Damage to the bundle\n");
        for sentence in &contents.damage {
            let _ = writeln!(out, "- {}", text(sentence));
        }
    }
}

/// Text from a bundle as Markdown that shows it as it is.
pub(crate) fn text(raw: &str) -> String {
    let mut safe = String::new();
    for c in clean(raw).chars() {
        if matches!(c, '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~') {
            safe.push('\\');
        }
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            c => safe.push(c),
        }
    }
    safe
}
