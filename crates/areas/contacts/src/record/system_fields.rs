//! The fields that every contact has, and the normalization of their values.

use fields::{Choice, Field, FieldOptions, FieldType, invisible, phone};
use model::{OptionId, Result};
use serde_json::Value;

/// The hidden field with the ids of the static segments that contain a contact.
pub(crate) const SEGMENTS: &str = "$segments";

/// The hidden field with identities that a contact took over from contacts that were merged into it, by field.
pub(crate) const ALIASES: &str = "$aliases";

/// The field with the time at which the autopilot is switched on again.
pub(crate) const PAUSED_UNTIL: &str = "$paused_until";

/// The hidden field with the last switch of the autopilot (actor and time) and the number of switches.
pub(crate) const AUTOPILOT_CONFIG: &str = "$autopilot_config";

/// The hidden field with the last assignment of the conversation: actor and time.
pub(crate) const ROUTING_CONFIG: &str = "$routing_config";

/// The field with the stage in the pipeline.
pub(crate) const STAGE: &str = "$stage";

/// The sources of contacts, each with key and label.
pub(crate) const SOURCES: &[(&str, &str)] = &[
    ("website", "Website"),
    ("chat", "Chat"),
    ("phone", "Phone"),
    ("email", "E-mail"),
    ("referral", "Referral"),
    ("advertising", "Advertising"),
    ("social_media", "Social media"),
    ("event", "Event"),
    ("import", "Import"),
    ("other", "Other"),
];

/// The initial stages of the pipeline in order, each with key and label. A workspace can change them.
const STAGES: &[(&str, &str)] = &[
    ("new", "New"),
    ("contacted", "Contacted"),
    ("qualified", "Qualified"),
    ("proposal", "Proposal"),
    ("negotiation", "Negotiation"),
    ("won", "Won"),
    ("lost", "Lost"),
];

/// Returns the system fields. Their numbers are stored with the values, so they never change.
pub(crate) fn system_fields() -> Vec<Field> {
    let text = |longest| FieldOptions { max_length: Some(longest), ..FieldOptions::default() };
    let plain = FieldOptions::default;
    let built_in = Field::built_in;
    let unique = |field| Field { unique: true, ..field };
    let formed = |field, form| Field { form: Some(form), ..field };
    let managed = |field, default: Option<Value>| Field { managed: true, default, ..field };
    let hidden = |field| Field { managed: true, hidden: true, ..field };
    vec![
        formed(built_in(1, "$name", "Name", FieldType::Text, text(200)), name),
        unique(built_in(2, "$phone", "Phone", FieldType::Phone, plain())),
        unique(built_in(3, "$email", "E-mail", FieldType::Email, text(254))),
        formed(unique(built_in(4, "$username", "User name", FieldType::Text, text(100))), identity),
        formed(unique(built_in(5, "$chat_user_id", "Chat user id", FieldType::Text, text(255))), identity),
        built_in(6, "$avatar_url", "Picture", FieldType::Url, plain()),
        formed(built_in(7, "$language", "Language", FieldType::Text, text(35)), language),
        formed(built_in(8, "$country", "Country", FieldType::Text, text(2)), country),
        formed(built_in(9, "$timezone", "Time zone", FieldType::Text, text(64)), time_zone),
        built_in(10, "$source", "Source", FieldType::Select, choices(SOURCES)),
        Field {
            open_choices: true,
            version: 1,
            ..built_in(11, STAGE, "Stage", FieldType::Select, choices(STAGES))
        },
        built_in(12, "$company", "Company", FieldType::Text, text(200)),
        built_in(13, "$birthday", "Birthday", FieldType::Date, plain()),
        managed(built_in(14, "$created_via", "Created via", FieldType::Select, choices(CREATED_VIA)), None),
        built_in(15, "$tags", "Tags", FieldType::Tags, plain()),
        managed(
            built_in(16, "$status", "Status", FieldType::Select, choices(STATUSES)),
            Some("active".into()),
        ),
        managed(built_in(17, "$assignee", "Assignee", FieldType::User, plain()), None),
        managed(built_in(18, "$autopilot", "Autopilot", FieldType::Boolean, plain()), Some(true.into())),
        managed(built_in(19, "$opted_out", "Opted out", FieldType::Boolean, plain()), Some(false.into())),
        hidden(built_in(20, SEGMENTS, "Segments", FieldType::Tags, plain())),
        // Number 21 belonged to a removed field. Never reuse it.
        hidden(built_in(22, ALIASES, "Aliases", FieldType::Json, plain())),
        managed(built_in(23, PAUSED_UNTIL, "Autopilot paused until", FieldType::Datetime, plain()), None),
        hidden(built_in(24, AUTOPILOT_CONFIG, "Autopilot", FieldType::Json, plain())),
        hidden(built_in(25, ROUTING_CONFIG, "Routing", FieldType::Json, plain())),
    ]
}

/// The origins of contacts (`$created_via`), each with key and label.
const CREATED_VIA: &[(&str, &str)] = &[
    ("api", "API"),
    ("import", "Import"),
    ("user", "Team member"),
    ("agent", "Agent"),
    ("flow", "Flow"),
    ("webhook", "Webhook"),
    ("service", "Service"),
    ("message", "Message"),
];

/// The statuses of contacts, each with key and label.
const STATUSES: &[(&str, &str)] = &[("active", "Active"), ("blocked", "Blocked")];

fn choices(of: &[(&str, &str)]) -> FieldOptions {
    let choice = |(number, (key, label)): (i64, &(&str, &str))| Choice {
        id: OptionId(-number),
        key: (*key).to_owned(),
        label: (*label).to_owned(),
        color: None,
        archived: false,
    };
    FieldOptions { choices: Some((1..).zip(of).map(choice).collect()), ..FieldOptions::default() }
}

/// Normalizes a name: trims spaces and invisible characters.
#[expect(clippy::unnecessary_wraps, reason = "forms can refuse a text")]
fn name(text: &str) -> Result<String, &'static str> {
    Ok(invisible::trimmed(text).to_owned())
}

/// Normalizes an identity: removes invisible characters, so that texts which look the same are equal.
#[expect(clippy::unnecessary_wraps, reason = "forms can refuse a text")]
fn identity(text: &str) -> Result<String, &'static str> {
    Ok(invisible::bare(text))
}

/// Normalizes a language tag (BCP 47), such as `pt-BR`.
fn language(text: &str) -> Result<String, &'static str> {
    let parts: Vec<&str> = text.split('-').collect();
    let is_sound =
        |part: &&str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let primary = parts
        .first()
        .is_some_and(|part| part.len() >= 2 && part.bytes().all(|byte| byte.is_ascii_alphabetic()));
    if !primary || !parts.iter().all(is_sound) {
        return Err("must be a language tag such as `en` or `pt-BR`");
    }
    let cased = |(place, part): (usize, &&str)| match (place, part.len()) {
        (0, _) => part.to_ascii_lowercase(),
        (_, 2) => part.to_ascii_uppercase(),
        _ => part.to_ascii_lowercase(),
    };
    Ok(parts.iter().enumerate().map(cased).collect::<Vec<_>>().join("-"))
}

/// Normalizes a country code (ISO 3166), such as `BR`.
fn country(text: &str) -> Result<String, &'static str> {
    let code = text.to_ascii_uppercase();
    if phone::is_country(&code) { Ok(code) } else { Err("must be a two-letter country code such as `BR`") }
}

/// Normalizes a time zone (IANA), such as `Europe/Madrid`.
fn time_zone(text: &str) -> Result<String, &'static str> {
    let zone: Result<chrono_tz::Tz, _> = text.parse();
    zone.map(|zone| zone.name().to_owned()).map_err(|_| "must be a time zone such as `Europe/Madrid`")
}
