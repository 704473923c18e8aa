//! Local times of day.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

pub(super) const MINUTES_OF_DAY: i64 = 1_440;

/// A local time of day, in minutes since midnight. `24:00` is the end of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(i64);

impl TimeOfDay {
    /// Returns the minutes since midnight.
    pub(super) fn minutes(self) -> i64 {
        self.0
    }

    /// Parses `HH:MM`, from `00:00` to `24:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let (hours, minutes) = text.split_once(':')?;
        let number = |part: &str| {
            let is_pair = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            is_pair.then(|| part.parse::<i64>().ok()).flatten()
        };
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let total = hours * 60 + minutes;
        (minutes < 60 && total <= MINUTES_OF_DAY).then_some(Self(total))
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:02}:{:02}", self.0 / 60, self.0 % 60))
    }
}

impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("must be a time such as 09:00"))
    }
}

impl utoipa::PartialSchema for TimeOfDay {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$"))
            .examples(["09:00"])
            .into()
    }
}

impl utoipa::ToSchema for TimeOfDay {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_have_one_spelling() {
        for text in ["00:00", "09:30", "23:59", "24:00"] {
            let time = TimeOfDay::parse(text).unwrap();
            assert_eq!(serde_json::to_value(time).unwrap(), text);
        }
        for text in ["", "9:00", "09:60", "24:01", "25:00", "09:00:00", "-1:00", "+9:00", "0900", "０９:00"]
        {
            assert_eq!(TimeOfDay::parse(text), None, "{text}");
        }
    }
}
