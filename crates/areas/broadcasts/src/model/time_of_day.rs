//! Times of the day.

use chrono::{NaiveTime, Timelike};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, schema::Type};

/// A time of the day: minutes after midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BroadcastTimeOfDay(u32);

impl BroadcastTimeOfDay {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_whole = text.len() == 5;
        let time = NaiveTime::parse_from_str(text, "%H:%M").ok().filter(|_| is_whole)?;
        Some(Self(time.hour() * 60 + time.minute()))
    }

    /// Returns the minutes since midnight.
    pub(crate) fn minutes(self) -> u32 {
        self.0
    }
}

impl Serialize for BroadcastTimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:02}:{:02}", self.0 / 60, self.0 % 60))
    }
}

impl<'de> Deserialize<'de> for BroadcastTimeOfDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("must be a time such as 21:00"))
    }
}

impl utoipa::PartialSchema for BroadcastTimeOfDay {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^([01][0-9]|2[0-3]):[0-5][0-9]$"))
            .examples(["21:00"])
            .into()
    }
}

impl utoipa::ToSchema for BroadcastTimeOfDay {}
