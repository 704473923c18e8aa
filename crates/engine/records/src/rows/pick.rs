//! Reading some values of an item without building the others.

use fields::Data;
use model::{Error, MemberName, Result};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// The values of an item that have one of these keys.
///
/// # Errors
/// When what is stored is damaged.
pub fn pick(text: &str, keys: &[&str]) -> Result<Data> {
    if keys.is_empty() {
        return Ok(Data::new());
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Picked(keys).deserialize(&mut deserializer).map_err(Error::internal)
}

struct Picked<'a>(&'a [&'a str]);

impl<'de> DeserializeSeed<'de> for Picked<'_> {
    type Value = Data;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Data, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Picked<'_> {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
        let mut data = Data::new();
        while let Some(key) = map.next_key::<MemberName<'de>>()?.map(|name| name.0) {
            if self.0.contains(&&*key) {
                data.insert(key.into_owned(), map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read() {
        let text = r#"{"a":1,"b":{"c":[1,"x"]},"d\u00e9":"é","e":null}"#;
        let data = pick(text, &["b", "dé", "z"]).unwrap();
        assert_eq!(serde_json::to_string(&data).unwrap(), r#"{"b":{"c":[1,"x"]},"dé":"é"}"#);
        assert!(pick("[]", &["a"]).is_err());
    }
}
