//! A load or fault of a scenario's shorthand: a word, or a table that may say where it runs.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpus::CpuRequest;

/// A load or fault of the shorthand, with where it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed<T> {
    /// The load or fault.
    pub what: T,
    /// The environment, when it is not the measurement's.
    pub environment: Option<String>,
    /// CPUs of that environment.
    pub cpus: Option<CpuRequest>,
}

impl<T: Serialize> Serialize for Placed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let mut table = serde_json::to_value(&self.what).map_err(S::Error::custom)?;
        if let Some(map) = table.as_object_mut() {
            if let Some(environment) = &self.environment {
                map.insert("in".into(), environment.clone().into());
            }
            if let Some(cpus) = &self.cpus {
                map.insert("cpus".into(), cpus.to_string().into());
            }
        }
        table.serialize(serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Placed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PlacedVisitor<T>(PhantomData<T>);
        impl<'de, T: DeserializeOwned> Visitor<'de> for PlacedVisitor<T> {
            type Value = Placed<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word, or a table with `kind`")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Placed<T>, E> {
                let what = T::deserialize(serde_json::json!({ "kind": word })).map_err(E::custom)?;
                Ok(Placed { what, environment: None, cpus: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Placed<T>, A::Error> {
                use serde::de::Error;
                let mut table = serde_json::Map::new();
                let (mut environment, mut cpus) = (None, None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "in" => environment = Some(map.next_value()?),
                        "cpus" => cpus = Some(map.next_value()?),
                        _ => {
                            table.insert(key, map.next_value()?);
                        }
                    }
                }
                let what = T::deserialize(serde_json::Value::Object(table)).map_err(A::Error::custom)?;
                Ok(Placed { what, environment, cpus })
            }
        }
        deserializer.deserialize_any(PlacedVisitor(PhantomData))
    }
}

/// One of them, or a list.
pub(super) fn one_or_many<'de, D, T>(deserializer: D) -> Result<Vec<Placed<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    struct OneOrMany<T>(PhantomData<T>);
    impl<'de, T: DeserializeOwned> Visitor<'de> for OneOrMany<T> {
        type Value = Vec<Placed<T>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a word, a table with `kind`, or a list of them")
        }

        fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
            Ok(vec![Placed::deserialize(serde::de::value::StrDeserializer::new(word))?])
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            Ok(vec![Placed::deserialize(serde::de::value::MapAccessDeserializer::new(map))?])
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(one) = seq.next_element()? {
                all.push(one);
            }
            Ok(all)
        }
    }
    deserializer.deserialize_any(OneOrMany(PhantomData))
}
