//! A card that is a device, as its user describes it: a file of TOML beside the plan, or its text in the plan.

use std::path::Path;

use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::Interrupt;
use tactus_model::device_card::DeviceCard;
use tactus_model::plan::{Plan, Scenario};
use tactus_system::System;

use super::parse::read;
use super::{PlanError, Source};

/// The longest description, in bytes: sixteen times as long as one with a comment for each key.
const LONGEST: u64 = 32 * 1024;

/// Reads a description.
///
/// # Errors
/// Text that is no TOML, an unknown key, a value that cannot be: with line and key.
pub fn described(source: &Source) -> Result<DeviceCard, PlanError> {
    let card: DeviceCard = read(source)?;
    match card.check() {
        Ok(()) => Ok(card),
        Err(error) => Err(source.error(error.key, error.message, error.hint)),
    }
}

/// Whether `card` is the description itself, and not the name of its file.
fn is_text(card: &str) -> bool {
    card.contains('\n')
}

/// The card of an activity; `None`: QEMU's.
pub(super) fn of(table: &Interrupt, at: &str, source: &Source) -> Result<Option<DeviceCard>, PlanError> {
    let Some(text) = &table.card else { return Ok(None) };
    if !is_text(text) {
        let hint = "name a file beside the plan, or write its text (TOML of several lines)";
        return Err(source.error(&format!("{at}.card"), format!("{text} does not describe a card"), hint));
    }
    described(&Source::new(format!("{}, card of {at}", source.file), text.as_str())).map(Some)
}

/// The card of an activity that was checked.
#[must_use]
pub fn of_checked(table: &Interrupt) -> Option<DeviceCard> {
    of(table, "", &Source::new("", "")).ok().flatten()
}

/// Puts the text of each card's file in the place of its name, so that the plan, and the bundle that keeps it, needs no
/// other file. Names are those of files beside the plan's own.
///
/// # Errors
/// A file that cannot be read, or is no description: with its name, line and key.
pub fn embed_cards(plan: &mut Plan, source: &Source, system: &dyn System) -> Result<(), PlanError> {
    let beside = Path::new(&source.file).parent().unwrap_or(Path::new("")).to_owned();
    let Plan { defaults, quick, scenario, .. } = plan;
    let named = [("defaults".to_owned(), defaults), ("quick".to_owned(), quick)];
    let numbered = (0..).zip(scenario).map(|(number, one): (u32, _)| (format!("scenario[{number}]"), one));
    for (path, scenario) in named.into_iter().chain(numbered) {
        for (at, table) in tables(&path, scenario) {
            let Some(card) = table.card.as_mut().filter(|card| !is_text(card)) else { continue };
            *card = text(&beside.join(&*card), &format!("{at}.card"), source, system)?;
        }
    }
    Ok(())
}

/// The tables of a scenario that may have a card.
fn tables<'s>(path: &str, scenario: &'s mut Scenario) -> Vec<(String, &'s mut Interrupt)> {
    let short = scenario.measurement.iter_mut().map(|measure| (format!("{path}.measurement"), measure));
    let full = scenario.activity.iter_mut().enumerate().filter_map(|(number, activity)| {
        Some((format!("{path}.activity[{number}].measure"), activity.measure.as_mut()?))
    });
    let all = short.chain(full).filter_map(|(at, measure)| match measure {
        Measure::Interrupt(table) => Some((at, table)),
        _ => None,
    });
    all.collect()
}

/// The text of a card's file, which is one.
fn text(path: &Path, key: &str, source: &Source, system: &dyn System) -> Result<String, PlanError> {
    let file = path.display().to_string();
    let bytes = system.read_at_most(path, LONGEST).map_err(|error| error.to_string());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()));
    let mut text = text.map_err(|error| {
        let hint = "a file that describes a card (contrib/cards has one, with a comment for each key)";
        source.error(key, format!("{file}: {error}"), hint)
    })?;
    described(&Source::new(file, &*text))?;
    // A name has one line, and a description that is in its place has more.
    if !is_text(&text) {
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tactus_system::Memory;

    use super::*;
    use crate::plan::parse;

    const EDU: &str = include_str!("../../../../contrib/cards/edu.toml");
    const TEMPLATE: &str = include_str!("../../../../contrib/cards/template.toml");

    /// The card's file, and what is wrong in it: `card.toml:3: trigger.at: ...; hint`.
    fn wrong(text: &str) -> String {
        let error = described(&Source::new("card.toml", text)).expect_err(text);
        format!("{error}; {}", error.hint.as_deref().unwrap_or_default())
    }

    #[test]
    fn the_cards_that_ship_are_described_rightly() {
        let edu = described(&Source::new("edu.toml", EDU)).unwrap();
        assert_eq!(
            (edu.pci.to_string(), edu.trigger.at, edu.answer.copies),
            ("1234:11e8".into(), 0x60, Some(0x24))
        );
        assert_eq!(edu.time, None, "it has no clock");
        let template = described(&Source::new("template.toml", TEMPLATE)).unwrap();
        assert!(template.time.is_some() && !template.without_iommu);
    }

    #[test]
    fn what_is_wrong_in_a_description_is_named_with_its_line_and_key() {
        let with = |from: &str, to: &str| {
            assert!(EDU.contains(from), "{from}");
            wrong(&EDU.replacen(from, to, 1))
        };
        let line = |text: &str| EDU.lines().position(|line| line == text).unwrap() + 1;
        for (from, to, key, said) in [
            ("bar = 0", "bar = 6", "bar", "no BAR 6"),
            ("bar = 0", "bar = -1", "bar", "invalid value"),
            ("bar = 0", "bar = 0\nregister = 3", "register", "unknown key `register`"),
            ("pci = \"1234:11e8\"", "pci = \"edu\"", "pci", "not a PCI id"),
            ("interrupt = \"msi\"", "interrupt = \"intx\"", "interrupt", "unknown word `intx`"),
            ("at = 0x60", "at = 0x61", "trigger.at", "cannot be at 0x61"),
            ("at = 0x60", "at = 0x1_0000_0000", "at", "invalid value"),
            ("at = 0x60", "at = \"0x60\"", "at", "is expected here"),
            ("copies = 0x24", "copies = 0x24\nwrite = 1", "answer", "or that of a register"),
            ("copies = 0x24", "", "answer", "word that the handler writes is missing"),
            ("[trigger]", "[trigger", "", "card.toml"),
        ] {
            let error = with(from, to);
            assert!(error.contains(key) && error.contains(said), "{to}: {error}");
            assert!(error.starts_with("card.toml:"), "the line is known: {error}");
        }
        let unaligned = with("at = 0x60", "at = 0x61");
        assert!(
            unaligned.starts_with(&format!("card.toml:{}: trigger.at", line("at = 0x60"))),
            "{unaligned}"
        );
        let still = format!("{EDU}\n[time]\nat = 0x10\nticks_per_us = 0\nshows = \"elapsed\"\n");
        assert!(wrong(&still).contains("time.ticks_per_us: a clock that never ticks"), "{}", wrong(&still));
        assert!(wrong("").contains("missing field"), "{}", wrong(""));
        let hostile = EDU.replacen("QEMU's edu", "\\u001b[2J", 1);
        assert!(wrong(&hostile).contains("controls a terminal"), "{}", wrong(&hostile));
    }

    const PLAN: &str = "name = \"p\"\n[environment.guest]\nkind = \"qemu\"\npci = [\"edu\"]\n[[scenario]]\nname = \"s\"\n\
                        [[scenario.activity]]\nmeasure = { kind = \"interrupt\", card = \"cards/edu.toml\" }\nin = \"guest\"\n";

    fn embedded(system: &Memory) -> Result<Plan, PlanError> {
        let source = Source::new("/plans/plan.toml", PLAN);
        let mut plan = parse(&source)?;
        embed_cards(&mut plan, &source, system)?;
        Ok(plan)
    }

    #[test]
    fn a_cards_file_lies_beside_the_plan_and_its_text_goes_into_it() {
        let plan = embedded(&Memory::new().file("/plans/cards/edu.toml", EDU)).unwrap();
        let Some(Measure::Interrupt(table)) = &plan.scenario[0].activity[0].measure else {
            panic!("{plan:?}")
        };
        assert_eq!(table.card.as_deref(), Some(EDU));
        assert_eq!(of_checked(table).unwrap().name, "QEMU's edu");
        // A bundle keeps the plan, and needs no file.
        let written = toml::to_string(&plan).unwrap();
        let source = Source::new("/elsewhere/plan.toml", written);
        let mut again = parse(&source).unwrap();
        embed_cards(&mut again, &source, &Memory::new()).unwrap();
        assert_eq!(again, plan);
    }

    #[test]
    fn a_file_that_is_absent_huge_or_no_description_is_named() {
        let absent = embedded(&Memory::new()).unwrap_err();
        assert!(
            absent.to_string().contains("/plans/plan.toml:8: scenario[0].activity[0].measure.card"),
            "{absent}"
        );
        assert!(absent.message.contains("/plans/cards/edu.toml") && absent.hint.is_some());
        let huge = EDU.to_owned() + &"#".repeat(32 * 1024);
        let huge = embedded(&Memory::new().file("/plans/cards/edu.toml", huge)).unwrap_err();
        assert!(huge.message.contains("/plans/cards/edu.toml"), "{huge}");
        let wrong = EDU.replacen("bar = 0", "bar = 7", 1);
        let wrong = embedded(&Memory::new().file("/plans/cards/edu.toml", wrong)).unwrap_err();
        assert!(wrong.to_string().starts_with("/plans/cards/edu.toml:"), "{wrong}");
        assert_eq!(wrong.key.as_deref(), Some("bar"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic_and_each_error_has_its_line(
            at in 0usize..600, cut in 0usize..40, put in ".{0,30}",
        ) {
            let mut text: Vec<char> = EDU.chars().collect();
            let from = at.min(text.len());
            let to = (from + cut).min(text.len());
            text.splice(from..to, put.chars());
            let text: String = text.into_iter().collect();
            match described(&Source::new("card.toml", &*text)) {
                Ok(card) => prop_assert_eq!(card.to_string().parse(), Ok(card)),
                Err(error) => {
                    prop_assert!(!error.message.is_empty());
                    let lines = text.matches('\n').count() + 1;
                    prop_assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)));
                }
            }
        }
    }
}
