//! The JSON Schema of plans, where a derived one would differ from the written form. Words with their tables are
//! described as in the catalogue; times and similar values are text.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::{Placed, fitness};
use crate::catalogue::fault::FAULTS;
use crate::catalogue::load::LOADS;
use crate::catalogue::measure::MEASURES;
use crate::catalogue::{Entry, Fault, Load, Measure, Parameter};
use crate::control::ControlBy;
use crate::cpus::{CpuRequest, CpuSet};
use crate::duration::Nanos;
use crate::outcome::Quantity;
use crate::partition::Percent;

/// A word that stands where a plan lists several: alone, as a table, or a list of them.
pub struct OneOrMany<T>(PhantomData<T>);

/// A family of words.
trait Words {
    const NAME: &'static str;
    fn entries() -> &'static [&'static Entry];
}

impl Words for Measure {
    const NAME: &'static str = "Measure";
    fn entries() -> &'static [&'static Entry] {
        MEASURES
    }
}

impl Words for Load {
    const NAME: &'static str = "Load";
    fn entries() -> &'static [&'static Entry] {
        LOADS
    }
}

impl Words for Fault {
    const NAME: &'static str = "Fault";
    fn entries() -> &'static [&'static Entry] {
        FAULTS
    }
}

/// The word alone, where nothing must be given with it, or its table, which may have these keys besides.
fn words(entries: &[&Entry], besides: &[(&str, Value)]) -> Schema {
    let alone = entries.iter().filter(|entry| entry.parameters.iter().all(may_be_left_out));
    let alone: Vec<&str> = alone.map(|entry| entry.name).collect();
    let mut ways = vec![json!({ "enum": alone })];
    ways.extend(entries.iter().map(|entry| table(entry, besides)));
    json_schema!({ "anyOf": ways })
}

const fn may_be_left_out(parameter: &Parameter) -> bool {
    parameter.optional || parameter.default.is_some()
}

/// The table of a word.
fn table(entry: &Entry, besides: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    properties.insert("kind".into(), json!({ "const": entry.name, "description": entry.summary }));
    for parameter in entry.parameters {
        properties.insert(parameter.key.into(), of_parameter(parameter));
    }
    for (key, schema) in besides {
        properties.insert((*key).into(), schema.clone());
    }
    let given = entry.parameters.iter().filter(|parameter| !may_be_left_out(parameter));
    let required: Vec<&str> = std::iter::once("kind").chain(given.map(|parameter| parameter.key)).collect();
    json!({
        "type": "object",
        "description": entry.summary,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn of_parameter(parameter: &Parameter) -> Value {
    let takes = (parameter.takes)();
    let mut schema = match takes.as_str() {
        "a number" => {
            let mut number = json!({ "type": "integer", "minimum": 0 });
            if let Some(bounds) = &parameter.bounds {
                number["minimum"] = (*bounds.start()).into();
                number["maximum"] = (*bounds.end()).into();
            }
            number
        }
        "true or false" => json!({ "type": "boolean" }),
        "a time" => json!({ "type": "string", "pattern": TIME }),
        "a list of words" => json!({ "type": "array", "items": { "type": "string" } }),
        choice if choice.starts_with('"') => {
            let words: Vec<&str> = choice.split(" or ").map(|word| word.trim_matches('"')).collect();
            json!({ "enum": words })
        }
        // A size, a range of sizes, a text.
        _ => json!({ "type": "string" }),
    };
    schema["description"] = format!("{} ({})", parameter.about(), parameter.takes()).into();
    schema
}

/// As [`Nanos`] are written.
const TIME: &str = r"^\s*([0-9][0-9_]*(\.[0-9_]*[0-9])?\s*(ns|us|µs|μs|ms|s|m|min|h|d)\s*)+$";

/// Says what a type is written as.
macro_rules! written {
    ($($type:ty, $name:literal => $schema:expr;)+) => { $(impl JsonSchema for $type {
        fn schema_name() -> Cow<'static, str> {
            $name.into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            let schema: fn(&mut SchemaGenerator) -> Schema = $schema;
            schema(generator)
        }
    })+ };
}

written! {
    Measure, "Measure" => |_| words(Measure::entries(), &[]);
    Load, "Load" => |_| words(Load::entries(), &[]);
    Fault, "Fault" => |_| words(Fault::entries(), &[]);
    Nanos, "Time" => |_| json_schema!({ "type": "string", "pattern": TIME, "description": "A time, as in `200us` or `24h`." });
    CpuSet, "CPUs" => |_| json_schema!({ "type": "string", "description": "CPUs, as in `2,4-6`." });
    CpuRequest, "CPUs asked for" => |_| json_schema!({
        "type": "string",
        "description": "CPUs, as in `2,4-6`; `auto`, `all`, `isolated`, `first`, `neighbour`, or all but some: `!0`.",
    });
    Quantity, "Quantity" => |_| json_schema!({ "type": "string", "description": "A number with its unit, as in `3.48us`." });
    Percent, "Percent" => |_| json_schema!({ "type": "string", "pattern": r"^\s*[1-9][0-9]?\s*%\s*$" });
    ControlBy, "Control" => |generator| json_schema!({
        "anyOf": [{ "type": "boolean" }, generator.subschema_for::<Fault>()],
    });
    fitness::Span, "Span" => |generator| json_schema!({
        "anyOf": [generator.subschema_for::<Nanos>(), generator.subschema_for::<fitness::Ends>()],
    });
}

impl<T: Words> JsonSchema for Placed<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{} somewhere", T::NAME).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let cpus = generator.subschema_for::<CpuRequest>().to_value();
        let place =
            json!({ "type": "string", "description": "The environment, when it is not the measurement's." });
        words(T::entries(), &[("in", place), ("cpus", cpus)])
    }
}

impl<T: Words> JsonSchema for OneOrMany<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}s", T::NAME).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<Placed<T>>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}
