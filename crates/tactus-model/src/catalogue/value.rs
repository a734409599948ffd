//! The types of parameters.

use serde::Serialize;

use crate::duration::Nanos;
use crate::size::{Bytes, Sizes};
use crate::wire::row::{Choice, Row};

/// A type of parameter.
pub trait Value: Row + Clone {
    /// Its type once a default has been filled in.
    type Given: Serialize;

    /// A description of the values that it takes.
    fn takes() -> String;

    /// Whether a plan may leave it out and have no value for it then.
    const OPTIONAL: bool = false;

    /// The given value, or the default.
    fn or(&self, default: Self::Given) -> Self::Given;

    /// Whether it was left out.
    fn is_absent(&self) -> bool {
        false
    }

    /// Its value as a number that can be compared with bounds.
    fn number(&self) -> Option<u64> {
        None
    }

    /// Such a number with its unit.
    #[must_use]
    fn shown(number: u64) -> String {
        number.to_string()
    }
}

/// A value as a plan writes it.
pub(super) fn written<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl<T: Value<Given = T> + Serialize> Value for Option<T>
where
    Self: Row,
{
    type Given = T;
    const OPTIONAL: bool = true;

    fn takes() -> String {
        T::takes()
    }

    fn or(&self, default: T) -> T {
        self.clone().unwrap_or(default)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn number(&self) -> Option<u64> {
        self.as_ref()?.number()
    }

    fn shown(number: u64) -> String {
        T::shown(number)
    }
}

impl<T: Choice> Value for T {
    type Given = T;

    fn takes() -> String {
        format!("\"{}\"", T::WORDS.join("\" or \""))
    }

    fn or(&self, _: T) -> T {
        *self
    }
}

macro_rules! values {
    ($($name:ty: $takes:literal $(, $number:expr, $shown:expr)?;)+) => { $(impl Value for $name {
        type Given = Self;

        fn takes() -> String {
            $takes.to_owned()
        }

        fn or(&self, _: Self) -> Self {
            self.clone()
        }

        $(fn number(&self) -> Option<u64> {
            Some($number(self.clone()))
        }

        fn shown(number: u64) -> String {
            $shown(number)
        })?
    })+ };
}

values! {
    u32: "a number", u64::from, |number: u64| number.to_string();
    Nanos: "a time", |ns: Nanos| ns.0, |ns| Nanos(ns).to_string();
    Bytes: "a size", |bytes: Bytes| bytes.0, |bytes| Bytes(bytes).to_string();
    Sizes: "a range of sizes", |sizes: Sizes| sizes.least.0.min(sizes.most.bytes().map_or(u64::MAX, |most| most.0)), |bytes| Bytes(bytes).to_string();
    bool: "true or false";
    String: "a text";
    Vec<String>: "a list of words";
}
