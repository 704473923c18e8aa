//! The profile of a business: its API object and its stored form.

use crate::time_of_day::TimeOfDay;
use crate::vertical::Vertical;
use chrono::NaiveDate;
use model::{Patch, Timestamp, text_enum};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

text_enum! {
    /// A day of the week.
    pub enum Weekday {
        /// Monday.
        Monday = "monday",
        /// Tuesday.
        Tuesday = "tuesday",
        /// Wednesday.
        Wednesday = "wednesday",
        /// Thursday.
        Thursday = "thursday",
        /// Friday.
        Friday = "friday",
        /// Saturday.
        Saturday = "saturday",
        /// Sunday.
        Sunday = "sunday",
    }
}

/// Opening hours that begin on a day of the week. A day can have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "day": "monday", "open": "09:00", "close": "18:00" }))]
pub struct OpeningHours {
    /// The day on which they begin.
    pub day: Weekday,
    /// When the business opens, in its time zone.
    pub open: TimeOfDay,
    /// When it closes. A time that is not after `open` is on the next day; `24:00` is the end of the day.
    pub close: TimeOfDay,
}

/// A day on which the business does not open. Opening hours of the day before that end after midnight still apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "date": "2026-12-25", "name": "Christmas Day", "yearly": true }))]
pub struct Holiday {
    /// The day.
    pub date: NaiveDate,
    /// The name of the holiday.
    #[serde(default)]
    pub name: Option<String>,
    /// Whether it is a holiday on the same day of every year.
    #[serde(default)]
    pub yearly: bool,
}

/// For how long a business keeps what it and its contacts wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "messages_days": 730, "files_days": 90 }))]
pub struct BusinessRetention {
    /// After how many days messages are deleted. `null` if they are kept for ever.
    pub messages_days: Option<i64>,
    /// After how many days files that contacts sent are deleted. `null` if they are kept for ever.
    pub files_days: Option<i64>,
}

/// The profile of a workspace's business.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "Wooden Toys", "legal_name": "Wooden Toys S.L.", "description": "Toys that last, made in Madrid.",
    "vertical": "retail", "time_zone": "Europe/Madrid", "currency": "EUR", "locale": "es-ES", "country": "ES",
    "address": "Calle Mayor 12, 28013 Madrid", "email": "hello@example.com", "phone": "+34911234567",
    "website": "https://example.com", "is_open_now": false, "next_open_at": "2026-11-23T08:00:00.000Z",
    "updated_at": "2026-11-21T09:30:00.120Z",
}))]
pub struct BusinessProfile {
    /// Always `business`.
    pub object: &'static str,
    /// The name of the business; the name of the workspace if the business has set none.
    pub name: String,
    /// The name under which the business is registered.
    pub legal_name: Option<String>,
    /// What the business offers.
    pub description: Option<String>,
    /// What the business does.
    pub vertical: Option<Vertical>,
    /// The time zone, as a name of the IANA time zone database. `UTC` if the business has set none.
    pub time_zone: String,
    /// The currency, as an ISO 4217 code.
    pub currency: Option<String>,
    /// The language and region, as a BCP 47 tag.
    pub locale: Option<String>,
    /// The country, as an ISO 3166-1 alpha-2 code.
    pub country: Option<String>,
    /// The postal address.
    pub address: Option<String>,
    /// The email address.
    pub email: Option<String>,
    /// The telephone number, in the format E.164.
    pub phone: Option<String>,
    /// The address of the website.
    pub website: Option<String>,
    /// The opening hours of a week.
    pub hours: Vec<OpeningHours>,
    /// The days on which the business does not open.
    pub holidays: Vec<Holiday>,
    /// Whether the business is open. `null` if it has set no opening hours.
    pub is_open_now: Option<bool>,
    /// When the business opens next. `null` if it is open, has set no opening hours, or does not open within a year.
    pub next_open_at: Option<Timestamp>,
    /// For how long messages and their files are kept.
    pub retention: BusinessRetention,
    /// When the profile was last changed. `null` if it was never set.
    pub updated_at: Option<Timestamp>,
}

/// A change of a profile. Absent fields stay unchanged, and `null` removes a value.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "Toy Shop", "time_zone": "Europe/Madrid", "hours": [{ "day": "monday", "open": "09:00", "close": "18:00" }],
}))]
pub struct BusinessPatch {
    /// The name, 1 to 120 characters.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub name: Patch<String>,
    /// The name under which the business is registered.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub legal_name: Patch<String>,
    /// The description, at most 2,000 characters.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub description: Patch<String>,
    /// The line of business.
    #[serde(default)]
    #[schema(value_type = Option<Vertical>)]
    pub vertical: Patch<Vertical>,
    /// The time zone.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub time_zone: Patch<String>,
    /// The currency.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub currency: Patch<String>,
    /// The language and region.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub locale: Patch<String>,
    /// The country.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub country: Patch<String>,
    /// The postal address.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub address: Patch<String>,
    /// The email address.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub email: Patch<String>,
    /// The telephone number. Without `+` it is read as a number of the profile's country.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub phone: Patch<String>,
    /// The address of the website.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub website: Patch<String>,
    /// The opening hours of a week.
    #[serde(default)]
    #[schema(value_type = Option<Vec<OpeningHours>>)]
    pub hours: Patch<Vec<OpeningHours>>,
    /// The days on which the business does not open.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Holiday>>)]
    pub holidays: Patch<Vec<Holiday>>,
    /// The retention of messages and files. `null` keeps both forever.
    #[serde(default)]
    #[schema(value_type = Option<BusinessRetentionPatch>)]
    pub retention: Patch<BusinessRetentionPatch>,
}

/// A change of the retention. Absent fields stay unchanged, and `null` keeps messages or files forever.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "messages_days": 730, "files_days": 90 }))]
pub struct BusinessRetentionPatch {
    /// The age at which messages are deleted, 1 to 3,650 days.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 3650)]
    pub messages_days: Patch<i64>,
    /// The age at which files sent by contacts are deleted, 1 to 3,650 days.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 3650)]
    pub files_days: Patch<i64>,
}

/// The stored profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Profile {
    pub(super) name: Option<String>,
    pub(super) legal_name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) vertical: Option<Vertical>,
    pub(super) time_zone: Option<String>,
    pub(super) currency: Option<String>,
    pub(super) locale: Option<String>,
    pub(super) country: Option<String>,
    pub(super) address: Option<String>,
    pub(super) email: Option<String>,
    pub(super) phone: Option<String>,
    pub(super) website: Option<String>,
    pub(super) hours: Option<Vec<OpeningHours>>,
    pub(super) holidays: Option<Vec<Holiday>>,
    pub(super) retention: BusinessRetention,
}

impl Profile {
    pub(super) fn apply(&mut self, patch: BusinessPatch) {
        patch.name.apply(&mut self.name);
        patch.legal_name.apply(&mut self.legal_name);
        patch.description.apply(&mut self.description);
        patch.vertical.apply(&mut self.vertical);
        patch.time_zone.apply(&mut self.time_zone);
        patch.currency.apply(&mut self.currency);
        patch.locale.apply(&mut self.locale);
        patch.country.apply(&mut self.country);
        patch.address.apply(&mut self.address);
        patch.email.apply(&mut self.email);
        patch.phone.apply(&mut self.phone);
        patch.website.apply(&mut self.website);
        patch.hours.apply(&mut self.hours);
        patch.holidays.apply(&mut self.holidays);
        match patch.retention {
            Patch::Keep => {}
            Patch::Clear => self.retention = BusinessRetention::default(),
            Patch::Set(retention) => {
                retention.messages_days.apply(&mut self.retention.messages_days);
                retention.files_days.apply(&mut self.retention.files_days);
            }
        }
    }
}
