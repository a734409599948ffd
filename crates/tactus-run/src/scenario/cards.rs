//! The interrupt cards of a scenario: there before the guests that take them, and gone after them.

use tactus_environment::{Card, TakenCard};
use tactus_model::CpuSet;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::AnswerBy;
use tactus_model::device_card::DeviceCard;
use tactus_model::message::{Activity, CardEnd, What};

use super::host_side::outside;
use super::{Failure, ScenarioRun};
use crate::context::Context;
use crate::plan::card_of;

/// A card that is there, the activity that it is for, and the guest that takes it.
pub(super) struct Served {
    activity: u32,
    guest: String,
    card: Card,
}

/// The device that an activity drives.
fn device(activity: &Activity) -> Option<DeviceCard> {
    match &activity.what {
        What::Measure { measure: Measure::Interrupt(table), .. } => card_of(table),
        _ => None,
    }
}

/// The activity as the probe gets it: with the card in words, and without its description, which it could not read.
fn driven(mut activity: Activity, end: CardEnd) -> Activity {
    if let What::Measure { measure: Measure::Interrupt(table), .. } = &mut activity.what {
        table.card = None;
    }
    Activity { card: Some(end), ..activity }
}

impl ScenarioRun<'_> {
    /// Makes the cards that its guests take.
    pub(super) fn serve_cards(&mut self, context: &Context<'_>, number: usize) -> Result<(), Failure> {
        for at in &self.planned.activities {
            let Some(guest) = at.card_goes_to() else { continue };
            let (activity, guest) = (at.activity.id, guest.to_owned());
            let socket = context.workspace.join(format!("{number:02}-card-{activity}.sock"));
            let card = Card::make(&socket, context.system)?;
            self.served.push(Served { activity, guest, card });
        }
        Ok(())
    }

    /// These CPUs of the machine without those of cards, where others are left. A card polls before all others: a thread of
    /// QEMU that is woken where it polls answers for the guest only when it rests.
    pub(super) fn beside_cards(&self, cpus: CpuSet) -> CpuSet {
        let cards = self.planned.activities.iter().filter(|at| at.card_goes_to().is_some());
        let taken = cards.fold(CpuSet::default(), |all, at| all.or(&at.activity.cpus));
        let rest = cpus.minus(&taken);
        if rest.is_empty() { cpus } else { rest }
    }

    /// Whether an environment takes a card in this scenario.
    pub(super) fn is_to_have_a_card(&self, name: &str) -> bool {
        self.planned.activities.iter().any(|at| at.card_goes_to() == Some(name))
    }

    /// Whether an environment is behind a card in this scenario.
    pub(super) fn has_a_card_to_raise(&self, name: &str) -> bool {
        self.planned.activities.iter().any(|at| at.environment == name && at.card_goes_to().is_some())
    }

    /// Whether the handler of an environment answers a card. One that polls takes the whole of its CPU, and is not given
    /// that before all others.
    pub(super) fn is_to_be_interrupted(&self, name: &str) -> bool {
        self.answers_by(name).is_some_and(|by| by != AnswerBy::Poll)
    }

    /// The card that an environment takes.
    pub(super) fn card_of(&self, name: &str) -> Option<TakenCard> {
        let served = self.served.iter().find(|served| served.guest == name)?;
        let by = self.answers_by(name)?;
        Some(TakenCard { socket: served.card.socket().to_owned(), by })
    }

    /// The code in an environment that answers its card.
    fn answers_by(&self, name: &str) -> Option<AnswerBy> {
        let mut to_it = self.planned.activities.iter().filter(|at| at.card_goes_to() == Some(name));
        to_it.find_map(|at| match &at.activity.what {
            What::Measure { measure: Measure::Interrupt(table), .. } => Some(table.answer()),
            _ => None,
        })
    }

    /// An activity with the card behind which it is.
    pub(super) fn with_card(&self, context: &Context<'_>, name: &str, activity: Activity) -> Activity {
        if let Some(card) = device(&activity) {
            let binds = context.resolved.environments[name].kind.numbers_cpus();
            return driven(activity, CardEnd::Device { binds, card: Box::new(card) });
        }
        let Some(served) = self.served.iter().find(|served| served.activity == activity.id) else {
            return activity;
        };
        let layout = &context.resolved.environments[&served.guest].layout;
        let others = outside(context, &served.guest, &layout.inside());
        let beside = others.iter().find(|cpu| !activity.cpus.contains(*cpu));
        let socket = served.card.socket().display().to_string();
        Activity { card: Some(CardEnd::Card { beside, socket }), ..activity }
    }

    /// The activities of an environment that takes a card.
    pub(super) fn answers_to_cards<'s>(
        &'s self,
        context: &'s Context<'_>,
        name: &'s str,
    ) -> impl Iterator<Item = Activity> + 's {
        self.planned.activities.iter().filter(move |at| at.card_goes_to() == Some(name)).map(move |at| {
            let cpus: CpuSet = context.resolved.environments[name].layout.measuring.clone();
            Activity { cpus, peer: None, card: Some(CardEnd::Answers), ..at.activity.clone() }
        })
    }
}
