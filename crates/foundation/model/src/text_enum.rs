//! Enums of words: one declaration for Rust, JSON, the contract and the database.

use serde::de::{Deserializer, Error, Visitor};
use std::fmt;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

#[doc(hidden)]
pub use {serde, utoipa};

/// Declares an enum whose variants are words, the same in JSON and in the contract.
///
/// It gives `ALL`, `as_str` and `parse`, and implements serde's traits and `ToSchema`. More is derived, and another name
/// given in the contract, by attributes in this order, after the doc comment that describes it there. The doc comments of
/// the variants are in the contract too:
///
/// ```
/// model::string_enum! {
///     /// The state of a door.
///     #[derive(Default, Hash)]
///     #[schema(as = FrontDoorStatus)]
///     pub enum DoorStatus {
///         /// Anybody can enter.
///         #[default]
///         Open = "open",
///         /// A key is needed.
///         LockedUp = "locked_up",
///     }
/// }
/// assert_eq!(DoorStatus::parse("locked_up"), Some(DoorStatus::LockedUp));
/// assert_eq!(DoorStatus::default().as_str(), "open");
/// ```
#[macro_export]
macro_rules! string_enum {
    (
        $(@stored $diesel:ident;)?
        $(#[doc = $doc:literal])*
        $(#[derive($($derive:ident),+)])?
        $(#[schema(as = $schema:ident)])?
        $vis:vis enum $name:ident {
            $($(#[doc = $meaning:literal])* $(#[default $($never:tt)*])? $variant:ident = $word:literal),+ $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $(#[derive($($derive),+)])?
        $(
            #[derive($diesel::AsExpression, $diesel::FromSqlRow)]
            #[diesel(sql_type = $diesel::sql_types::Text)]
        )?
        $vis enum $name {
            $($(#[doc = $meaning])* $(#[default $($never)*])? $variant),+
        }

        impl $name {
            /// All of them, in the order of their declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word in JSON and in the database.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// Reads the word.
            pub fn parse(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl $crate::text_enum::serde::Serialize for $name {
            fn serialize<S: $crate::text_enum::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> $crate::text_enum::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::text_enum::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::text_enum::deserialize(deserializer, Self::parse, &[$($word),+])
            }
        }

        impl $crate::text_enum::utoipa::PartialSchema for $name {
            fn schema() -> $crate::text_enum::utoipa::openapi::RefOr<$crate::text_enum::utoipa::openapi::Schema> {
                $crate::text_enum::schema(concat!($($doc, "\n"),*), &[$(($word, concat!($($meaning),*))),+])
            }
        }

        impl $crate::text_enum::utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                let [name, ..] = [$(stringify!($schema),)? stringify!($name)];
                name.into()
            }
        }

        $(
            impl<DB> $diesel::serialize::ToSql<$diesel::sql_types::Text, DB> for $name
            where
                DB: $diesel::backend::Backend,
                str: $diesel::serialize::ToSql<$diesel::sql_types::Text, DB>,
            {
                fn to_sql<'b>(
                    &'b self,
                    out: &mut $diesel::serialize::Output<'b, '_, DB>,
                ) -> $diesel::serialize::Result {
                    self.as_str().to_sql(out)
                }
            }

            impl<DB> $diesel::deserialize::FromSql<$diesel::sql_types::Text, DB> for $name
            where
                DB: $diesel::backend::Backend,
                String: $diesel::deserialize::FromSql<$diesel::sql_types::Text, DB>,
            {
                fn from_sql(bytes: DB::RawValue<'_>) -> $diesel::deserialize::Result<Self> {
                    let word =
                        <String as $diesel::deserialize::FromSql<$diesel::sql_types::Text, DB>>::from_sql(bytes)?;
                    Self::parse(&word).ok_or_else(|| $crate::text_enum::unknown(stringify!($name), &word))
                }
            }
        )?
    };
}

/// Declares a [`string_enum!`](crate::string_enum) that rows can hold: the same words are in `TEXT` columns.
///
/// It implements diesel's traits for `Text`, so a crate that uses it depends on diesel. A stored word that is none of
/// them is an error of the query, so a 500.
#[macro_export]
macro_rules! text_enum {
    ($($declaration:tt)*) => {
        $crate::string_enum! { @stored diesel; $($declaration)* }
    };
}

/// Reads a word that `parse` knows.
#[doc(hidden)]
pub fn deserialize<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: fn(&str) -> Option<T>,
    words: &'static [&'static str],
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Word { parse, words })
}

struct Word<T> {
    parse: fn(&str) -> Option<T>,
    words: &'static [&'static str],
}

impl<T> Visitor<'_> for Word<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::unknown_variant(text, self.words))
    }
}

/// A string that is one of `words`, which come with their meanings, described by a doc comment.
#[doc(hidden)]
pub fn schema(comment: &str, words: &[(&str, &str)]) -> RefOr<Schema> {
    let mut lines: Vec<String> = comment.lines().map(|line| line.trim().to_owned()).collect();
    if words.iter().any(|(_, meaning)| !meaning.is_empty()) {
        lines.push(String::new());
        lines.extend(words.iter().map(|(word, meaning)| format!("- `{word}`: {}", meaning.trim())));
    }
    let description = Some(lines.join("\n")).filter(|text| !text.is_empty());
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(description)
        .enum_values(Some(words.iter().map(|(word, _)| *word)))
        .into()
}

/// What a stored word is that no variant has.
#[doc(hidden)]
pub fn unknown(name: &str, word: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!("`{word}` is no {name}").into()
}

#[cfg(test)]
mod tests {
    use utoipa::ToSchema;

    text_enum! {
        /// Where it is.
        ///
        /// Or was.
        #[derive(Default)]
        #[schema(as = Location)]
        enum Place {
            /// Here.
            #[default]
            Here = "here",
            /// There.
            OverThere = "over_there",
        }
    }

    #[test]
    fn words_are_the_same_everywhere() {
        for place in Place::ALL {
            assert_eq!(Place::parse(place.as_str()), Some(place));
            assert_eq!(serde_json::to_value(place).unwrap(), place.as_str());
            assert_eq!(serde_json::from_value::<Place>(place.as_str().into()).unwrap(), place);
        }
        assert_eq!(Place::parse("Here"), None);
        assert_eq!(Place::default(), Place::Here);
        let error = serde_json::from_str::<Place>("\"nowhere\"").unwrap_err();
        assert!(error.to_string().starts_with("unknown variant `nowhere`"), "{error}");
        assert!(serde_json::from_str::<Place>("1").is_err());
    }

    #[test]
    fn the_contract_lists_the_words() {
        let schema = serde_json::to_value(<Place as utoipa::PartialSchema>::schema()).unwrap();
        let expected = serde_json::json!({
            "type": "string",
            "description": "Where it is.\n\nOr was.\n\n- `here`: Here.\n- `over_there`: There.",
            "enum": ["here", "over_there"],
        });
        assert_eq!(schema, expected);
        assert_eq!(Place::name(), "Location");
    }
}
