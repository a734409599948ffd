//! The answer to the question that a report is opened with.

use tactus_model::Evidence;
use tactus_model::document::{AnswerEntry, AnswerTone, NextEntry};

use super::Tone;

/// "Can this machine hold my deadline?", answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The answer in capitals: `MET`, `NOT MET`.
    pub word: &'static str,
    /// How good the news is.
    pub tone: Tone,
    /// The answer in a sentence.
    pub sentence: String,
    /// The evidence it rests on, the best first.
    pub evidence: Vec<Evidence>,
    /// The most helpful step.
    pub next: Option<Next>,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// The action.
    pub title: String,
    /// The command or boot parameter; may be empty.
    pub command: String,
    /// Its known benefit, and how to learn more.
    pub why: String,
}

impl Answer {
    /// The answer in one line: `NOT MET: host, loaded: max 187 us > 100 us (10 s, bare metal).`
    #[must_use]
    pub fn line(&self) -> String {
        format!("{}: {}", self.led(), self.sentence)
    }

    /// The word, and that it rests on emulation alone, which promises nothing: where no badge stands beside it.
    #[must_use]
    pub fn led(&self) -> String {
        match self.evidence.first() {
            Some(Evidence::Emulated) => format!("{}, EMULATED", self.word),
            _ => self.word.to_owned(),
        }
    }
}

impl From<Answer> for AnswerEntry {
    fn from(answer: Answer) -> Self {
        let next = answer.next.map(|next| NextEntry {
            command: Some(next.command).filter(|command| !command.is_empty()),
            title: next.title,
            why: next.why,
        });
        let tone = match answer.tone {
            Tone::Good => AnswerTone::Good,
            Tone::Bad => AnswerTone::Bad,
            Tone::Doubt => AnswerTone::Doubt,
            Tone::Quiet | Tone::Heading => AnswerTone::Quiet,
        };
        Self { word: answer.word.into(), tone, sentence: answer.sentence, evidence: answer.evidence, next }
    }
}

impl Next {
    /// The step in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let command = if self.command.is_empty() { String::new() } else { format!(": {}", self.command) };
        format!("{}{command} ({})", self.title, self.why)
    }
}
