//! How a plan says a word: as a table with `kind`, or alone.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};

/// For `#[serde(deserialize_with)]`: a table with `kind`, or the kind alone as a word.
///
/// # Errors
/// Those of the table.
pub fn word_or_table<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    struct WordOrTable<T>(PhantomData<T>);
    impl<'de, T: DeserializeOwned> Visitor<'de> for WordOrTable<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a word, or a table with `kind`")
        }

        fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<T, E> {
            let table = serde_json::json!({ "kind": word });
            T::deserialize(table).map_err(E::custom)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(WordOrTable(PhantomData))
}

/// As [`word_or_table`], for keys that may be left out.
///
/// # Errors
/// Those of the table.
pub fn optional_word_or_table<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    word_or_table(deserializer).map(Some)
}
