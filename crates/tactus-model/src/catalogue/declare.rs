//! The macros by which words and their families are declared.

/// Declares a word. For each parameter: its documentation, its name (`as` the plan's key, if that differs), its type,
/// its default after `=`, and its bounds. After them come the counted samples of a measurement of latency (`counts`),
/// the items of one that `yields` values, and the key by which a plan names its `peer`.
macro_rules! word {
    (
        $(#[doc = $text:literal])+
        $(#[derive($($derive:ident),+)])?
        pub struct $name:ident = $family:ident $word:literal: $summary:literal {
            $(
                $(#[doc = $about:literal])+
                pub $field:ident $(as $key:literal)?: $type:ty $(= $default:expr)? $(, $bounds:expr)?;
            )*
        }
        $(counts $samples:literal;)?
        $(yields $items:expr;)?
        $(peer $peer:ident;)?
    ) => {
        $(#[doc = $text])+
        #[derive(Clone, Debug, $($($derive,)+)? PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[doc = $about])+
                $(#[serde(rename = $key)])?
                $(#[doc = concat!("\n\nDefault: `", stringify!($default), "`.")] #[serde(default)])?
                #[serde(skip_serializing_if = "crate::catalogue::Value::is_absent")]
                pub $field: $type,
            )*
        }

        impl $name {
            /// The word of the plan.
            pub const NAME: &'static str = $word;
            /// The values that it yields, in their order.
            pub const ITEMS: &'static [$crate::catalogue::Item] = $crate::catalogue::declare::list!($($items)?);

            $($(
                #[doc = concat!("Its `", stringify!($field), "`, whether given or not.")]
                #[must_use]
                pub fn $field(&self) -> <$type as $crate::catalogue::Value>::Given {
                    $crate::catalogue::Value::or(&self.$field, $default)
                }
            )?)*

            /// Whether what is given lies within its bounds.
            ///
            /// # Errors
            /// The first parameter that does not.
            pub fn check(&self) -> Result<(), $crate::catalogue::OutOfRange> {
                $($crate::catalogue::entry::within(
                    $crate::catalogue::declare::key!($field $($key)?),
                    &self.$field,
                    $crate::catalogue::declare::given!($($bounds)?),
                )?;)*
                Ok(())
            }
        }

        impl $crate::wire::row::Row for $name {
            fn put(&self, _: &str, row: &mut Vec<String>) {
                // A word may have no parameters.
                let _ = &row;
                $($crate::wire::row::Row::put(
                    &self.$field,
                    $crate::catalogue::declare::key!($field $($key)?),
                    row,
                );)*
            }

            fn take(_: &str, row: &[String]) -> Option<Self> {
                let _ = row;
                Some(Self { $($field: $crate::wire::row::Row::take(
                    $crate::catalogue::declare::key!($field $($key)?),
                    row,
                )?,)* })
            }
        }

        /// The entry of the catalogue.
        pub static ENTRY: $crate::catalogue::Entry = $crate::catalogue::Entry {
            name: $word,
            family: $crate::catalogue::Family::$family,
            summary: $summary,
            text: concat!($($text, "\n"),+),
            parameters: &[$($crate::catalogue::Parameter {
                key: $crate::catalogue::declare::key!($field $($key)?),
                about: concat!($($about, "\n"),+),
                takes: <$type as $crate::catalogue::Value>::takes,
                optional: <$type as $crate::catalogue::Value>::OPTIONAL,
                default: $crate::catalogue::declare::written!($($default)?),
                bounds: $crate::catalogue::declare::given!($($bounds)?),
                shown: <$type as $crate::catalogue::Value>::shown,
            }),*],
            counts: $crate::catalogue::declare::given!($($samples)?),
            items: $name::ITEMS,
            peer: $crate::catalogue::declare::given!($($crate::catalogue::PeerKey::$peer)?),
        };
    };
}

/// The key of a field.
macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

/// The bounds, as an option.
macro_rules! given {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// A list, which may be empty.
macro_rules! list {
    () => {
        &[]
    };
    ($items:expr) => {
        &$items
    };
}

/// The function that writes a default, if there is one.
macro_rules! written {
    () => {
        None
    };
    ($default:expr) => {
        Some(|| $crate::catalogue::value::written(&$default))
    };
}

/// Declares a family: its files, each with its word, as an enum and as a table of entries.
macro_rules! family {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident, $table:ident { $($file:ident::$word:ident),+ $(,)? }
    ) => {
        $(
            pub mod $file;
            pub use $file::$word;
        )+

        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
        pub enum $name {
            $(#[doc = concat!("See [`", stringify!($file), "`].")] $word($word)),+
        }

        #[doc = concat!("Every word of [`", stringify!($name), "`].")]
        pub static $table: &[&$crate::catalogue::Entry] = &[$(&$file::ENTRY),+];

        #[cfg(test)]
        pub(super) const FILES: &[&str] = &[$(stringify!($file)),+];

        impl $name {
            /// The word of the plan.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$word(_) => $word::NAME),+
                }
            }

            /// Its entry in the catalogue.
            #[must_use]
            pub fn entry(&self) -> &'static $crate::catalogue::Entry {
                match self {
                    $(Self::$word(_) => &$file::ENTRY),+
                }
            }

            /// Whether what is given lies within its bounds.
            ///
            /// # Errors
            /// The first parameter that does not.
            pub fn check(&self) -> Result<(), $crate::catalogue::OutOfRange> {
                match self {
                    $(Self::$word(table) => table.check()),+
                }
            }
        }

        impl $crate::wire::row::Row for $name {
            fn put(&self, key: &str, row: &mut Vec<String>) {
                $crate::wire::row::push(key, self.kind(), row);
                match self {
                    $(Self::$word(table) => $crate::wire::row::Row::put(table, key, row)),+
                }
            }

            fn take(key: &str, row: &[String]) -> Option<Self> {
                match $crate::wire::row::find(key, row)? {
                    $($word::NAME => $crate::wire::row::Row::take(key, row).map(Self::$word),)+
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use {family, given, key, list, word, written};
