//! The control: the known fault by which a run proves its instrument before it measures.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::catalogue::Fault;
use crate::wire::row::row;

row! {
    /// The control that proves the instrument. In a plan: `true`, `false`, or the table of a fault.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub enum ControlBy {
        /// Nothing.
        Nothing,
        /// One 1 ms SCHED_FIFO hog on each measuring CPU.
        #[default]
        Hog,
        /// One injection of this fault, by its length, on the measuring CPUs.
        Fault(fault: Fault),
    }
}

impl ControlBy {
    /// Whether something is injected at all.
    #[must_use]
    pub const fn is_some(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// The word for the injected disturbance.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Hog => "hog",
            Self::Fault(fault) => fault.kind(),
        }
    }
}

impl Serialize for ControlBy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nothing => serializer.serialize_bool(false),
            Self::Hog => serializer.serialize_bool(true),
            Self::Fault(fault) => fault.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ControlBy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(Self::Nothing),
            Value::Bool(true) => Ok(Self::Hog),
            table @ Value::Object(_) => Fault::deserialize(table).map(Self::Fault).map_err(D::Error::custom),
            other => {
                Err(D::Error::custom(format!("{other} is neither true, false nor the table of a fault")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_is_a_word_or_a_fault() {
        for text in ["true", "false", r#"{"kind":"block","length":"50ms","every":"1s"}"#] {
            let control: ControlBy = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&control).unwrap(), text);
        }
        assert!(serde_json::from_str::<ControlBy>("3").is_err());
        assert!(serde_json::from_str::<ControlBy>(r#"{"kind":"flood"}"#).is_err());
    }
}
