//! Objects of JSON whose values stay text.

use crate::{Error, Result};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The name of a member of a JSON object, borrowed from its text where no character of it is escaped there. (serde's own
/// `Cow` is always a copy.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberName<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for MemberName<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl<'de> Visitor<'de> for Name {
            type Value = MemberName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(MemberName(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(MemberName(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_str(Name)
    }
}

/// The members of a JSON object in their order, with their values as they are written.
#[derive(Debug, Default)]
pub struct RawMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawMembers<'a> {
    /// Those of the object that is written here.
    ///
    /// # Errors
    /// `internal_error` where it is no object: what is stored was written by us.
    pub fn of(text: &'a str) -> Result<Self> {
        serde_json::from_str(text).map_err(Error::internal)
    }

    /// The value of a member, as it is written.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.raw(name).map(RawValue::get)
    }

    /// The same as a value that is not parsed.
    pub fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
    }

    /// The value of a member, read as `T`. `None` where there is no such member, or it is something else.
    pub fn read<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// Names and values in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = RawMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(24);
                while let Some((name, value)) = map.next_entry::<MemberName<'de>, &'de RawValue>()? {
                    members.push((name.0, value));
                }
                Ok(RawMembers(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_as_they_are_written() {
        let text = r#"{"a": [1, "x"] ,"d\u00e9":"\u00e9","n":null,"t":true}"#;
        let members = RawMembers::of(text).unwrap();
        assert_eq!(members.get("a"), Some(r#"[1, "x"]"#));
        assert_eq!(members.get("dé"), Some(r#""\u00e9""#));
        assert_eq!(members.read::<String>("dé").as_deref(), Some("é"));
        assert_eq!(members.read::<bool>("t"), Some(true));
        assert_eq!(members.read::<bool>("n"), None);
        assert_eq!(members.get("b"), None);
        let names: Vec<&str> = members.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "dé", "n", "t"]);
        assert!(RawMembers::of("[]").is_err());
    }

    #[test]
    fn names_are_borrowed_where_they_can_be() {
        let borrowed: MemberName<'_> = serde_json::from_str(r#""name""#).unwrap();
        assert!(matches!(borrowed.0, Cow::Borrowed("name")));
        let owned: MemberName<'_> = serde_json::from_str(r#""n\u0061me""#).unwrap();
        assert!(matches!(owned.0, Cow::Owned(name) if name == "name"));
    }
}
