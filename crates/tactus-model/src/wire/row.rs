//! Values as rows of words, for messages to a probe: `key=value` for each given field.
//!
//! Another type sent to a probe as JSON makes the probe larger by 120 KB. So such a type is declared within [`row!`],
//! [`choice!`] or the macros of [`crate::catalogue`]: they make the type and its row from one list of fields.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::duration::Nanos;
use crate::size::{Bytes, Cache, Most, Sizes};

/// A value that is written as words of a row.
pub trait Row: Sized {
    /// Adds its words. A type with fields adds those, whatever its key.
    fn put(&self, key: &str, row: &mut Vec<String>);

    /// Reads it; `None`: it is missing, or invalid.
    fn take(key: &str, row: &[String]) -> Option<Self>;
}

/// A value that is one word.
pub trait Word: Sized {
    /// The word.
    fn word(&self) -> String;

    /// The value of a word; `None`: unknown.
    fn of(word: &str) -> Option<Self>;
}

/// One of several words.
pub trait Choice: Word + Copy + Serialize + 'static {
    /// All of them.
    const WORDS: &'static [&'static str];
}

/// Adds `key=value`.
pub(crate) fn push(key: &str, value: &str, row: &mut Vec<String>) {
    row.push([key, "=", value].concat());
}

/// The first value of a key.
pub(crate) fn find<'a>(key: &str, row: &'a [String]) -> Option<&'a str> {
    row.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

impl<T: Word> Row for T {
    fn put(&self, key: &str, row: &mut Vec<String>) {
        push(key, &self.word(), row);
    }

    fn take(key: &str, row: &[String]) -> Option<Self> {
        Self::of(find(key, row)?)
    }
}

impl<T: Word> Row for Option<T> {
    fn put(&self, key: &str, row: &mut Vec<String>) {
        if let Some(value) = self {
            value.put(key, row);
        }
    }

    fn take(key: &str, row: &[String]) -> Option<Self> {
        match find(key, row) {
            None => Some(None),
            Some(word) => T::of(word).map(Some),
        }
    }
}

impl Row for Vec<String> {
    fn put(&self, key: &str, row: &mut Vec<String>) {
        for value in self {
            push(key, value, row);
        }
    }

    fn take(key: &str, row: &[String]) -> Option<Self> {
        let values = row.iter().filter_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        Some(values.map(str::to_owned).collect())
    }
}

impl Word for String {
    fn word(&self) -> String {
        self.clone()
    }

    fn of(word: &str) -> Option<Self> {
        Some(word.to_owned())
    }
}

macro_rules! numbers {
    ($($name:ident)+) => { $(impl Word for $name {
        fn word(&self) -> String {
            self.to_string()
        }

        fn of(word: &str) -> Option<Self> {
            word.parse().ok()
        }
    })+ };
}

numbers! { u32 u64 bool }

impl Word for Nanos {
    fn word(&self) -> String {
        self.0.word()
    }

    fn of(word: &str) -> Option<Self> {
        u64::of(word).map(Self)
    }
}

impl Word for Bytes {
    fn word(&self) -> String {
        self.0.word()
    }

    fn of(word: &str) -> Option<Self> {
        u64::of(word).map(Self)
    }
}

impl Word for Sizes {
    fn word(&self) -> String {
        [self.least.word(), self.most.word()].join("..")
    }

    fn of(word: &str) -> Option<Self> {
        let (least, most) = word.split_once("..")?;
        Some(Self { least: Bytes::of(least)?, most: Most::of(most)? })
    }
}

impl Word for Most {
    fn word(&self) -> String {
        match self {
            Self::Size(bytes) => bytes.word(),
            Self::Caches { times, cache } => [times.word(), cache.word()].join("x"),
        }
    }

    fn of(word: &str) -> Option<Self> {
        let Some((times, cache)) = word.split_once('x') else { return Bytes::of(word).map(Self::Size) };
        Some(Self::Caches { times: u32::of(times)?, cache: Cache::of(cache)? })
    }
}

impl Word for Cache {
    fn word(&self) -> String {
        match self {
            Self::Own => String::new(),
            Self::Size(bytes) => bytes.word(),
            Self::Unknown => "?".into(),
        }
    }

    fn of(word: &str) -> Option<Self> {
        match word {
            "" => Some(Self::Own),
            "?" => Some(Self::Unknown),
            size => Bytes::of(size).map(Self::Size),
        }
    }
}

/// Declares a struct, or an enum of several kinds, that travels in rows. The word of a kind is its name.
macro_rules! row {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$about:meta])* pub $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$meta])*
        pub struct $name { $($(#[$about])* pub $field: $type),* }

        impl $crate::wire::row::Row for $name {
            fn put(&self, _: &str, row: &mut Vec<String>) {
                $($crate::wire::row::Row::put(&self.$field, stringify!($field), row);)*
            }

            fn take(_: &str, row: &[String]) -> Option<Self> {
                Some(Self { $($field: $crate::wire::row::Row::take(stringify!($field), row)?),* })
            }
        }
    };
    ($(#[$meta:meta])* pub enum $name:ident { $(
        $(#[$about:meta])* $kind:ident
            $({ $($(#[$inner:meta])* $field:ident: $type:ty),* $(,)? })?
            $(($only:ident: $table:ty))?
    ),* $(,)? }) => {
        $(#[$meta])*
        pub enum $name { $(
            $(#[$about])* $kind $({ $($(#[$inner])* $field: $type),* })? $(($table))?
        ),* }

        impl $crate::wire::row::Row for $name {
            fn put(&self, key: &str, row: &mut Vec<String>) {
                match self { $(
                    Self::$kind $({ $($field),* })? $(($only))? => {
                        $crate::wire::row::push(key, stringify!($kind), row);
                        $($($crate::wire::row::Row::put($field, stringify!($field), row);)*)?
                        $($crate::wire::row::Row::put($only, stringify!($only), row);)?
                    }
                )* }
            }

            fn take(key: &str, row: &[String]) -> Option<Self> {
                match $crate::wire::row::find(key, row)? {
                    $(stringify!($kind) => Some(Self::$kind
                        $({ $($field: $crate::wire::row::Row::take(stringify!($field), row)?),* })?
                        $((<$table as $crate::wire::row::Row>::take(stringify!($only), row)?))?
                    ),)*
                    _ => None,
                }
            }
        }
    };
}

/// Declares an enum of which each kind is a word: in a plan, in JSON and in a row.
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$about:meta])* $kind:ident = $word:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name { $($(#[$about])* #[serde(rename = $word)] $kind),* }

        impl $crate::wire::row::Word for $name {
            fn word(&self) -> String {
                match self { $(Self::$kind => $word),* }.to_owned()
            }

            fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }

        impl $crate::wire::row::Choice for $name {
            const WORDS: &'static [&'static str] = &[$($word),*];
        }
    };
}

pub(crate) use {choice, row};

/// The key of a value that is a row by itself.
const ITSELF: &str = "what";

/// The value of a row; `None` if no known type matches.
fn said<T: Row>(row: &[String]) -> Option<T> {
    T::take(ITSELF, row)
}

fn words<T: Row>(value: &T) -> Vec<String> {
    let mut row = Vec::new();
    value.put(ITSELF, &mut row);
    row
}

/// For `#[serde(with)]`: a value as its row.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: Row, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    words(value).serialize(serializer)
}

/// For `#[serde(with)]`: a value from its row.
///
/// # Errors
/// When the row says nothing that is known here.
pub fn deserialize<'de, T: Row, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    said(&Vec::<String>::deserialize(deserializer)?).ok_or_else(|| D::Error::custom(UNKNOWN))
}

const UNKNOWN: &str = "a row that says nothing known";

/// For `#[serde(with)]`: values as a list of rows.
pub mod many {
    use super::{Deserialize, Deserializer, Error, Row, Serialize, Serializer, UNKNOWN, said, words};

    /// # Errors
    /// Those of the serializer.
    pub fn serialize<T: Row, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        values.iter().map(words).collect::<Vec<_>>().serialize(serializer)
    }

    /// # Errors
    /// When a row says nothing that is known here.
    pub fn deserialize<'de, T: Row, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        let rows = Vec::<Vec<String>>::deserialize(deserializer)?;
        rows.iter().map(|row| said(row)).collect::<Option<_>>().ok_or_else(|| D::Error::custom(UNKNOWN))
    }
}

/// For tests of what travels so.
#[cfg(test)]
pub(crate) mod testing {
    use std::fmt::Debug;

    use super::{Row, said, words};

    /// The value comes back whole, and from no shorter row than one without what may be left out.
    pub fn returns<T: Row + PartialEq + Debug>(value: &T) {
        let row = words(value);
        assert_eq!(said::<T>(&row).as_ref(), Some(value), "{row:?}");
        for missing in 0..row.len() {
            let mut cut = row.clone();
            cut.remove(missing);
            // Less than all is another value, or none.
            assert_ne!(said::<T>(&cut).as_ref(), Some(value), "{cut:?}");
        }
    }

    /// Whether these words say something.
    pub fn is_known<T: Row>(row: &[&str]) -> bool {
        said::<T>(&row.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).is_some()
    }
}
