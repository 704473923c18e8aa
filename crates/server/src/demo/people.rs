//! The demo's business: a small shop in Madrid, and the people who work there.

use business::BusinessPatch;
use business::team::{self, Availability, AvailabilityStatus, MemberRole, NewMember};
use model::{Error, MemberId, Result, WorkspaceId};
use serde_json::json;
use store::Tx;

/// Name, role, the most conversations at a time, and languages.
const MEMBERS: [(&str, MemberRole, Option<i64>, &[&str]); 5] = [
    ("Marta Ruiz", MemberRole::Owner, None, &["es", "en"]),
    ("Daniel Okafor", MemberRole::Manager, Some(20), &["en", "fr"]),
    ("Lucía Fernández", MemberRole::Agent, Some(30), &["es", "pt-BR"]),
    ("Jonas Weber", MemberRole::Agent, Some(30), &["de", "en"]),
    ("Aiko Tanaka", MemberRole::Viewer, None, &["ja", "en"]),
];

/// Makes the team and the profile of the business, and gives the ids of the members.
pub(super) fn make(tx: &mut Tx, workspace: WorkspaceId) -> Result<Vec<MemberId>> {
    let mut made = Vec::with_capacity(MEMBERS.len());
    for (name, role, capacity, languages) in MEMBERS {
        let first = name.split(' ').next().unwrap_or(name).to_lowercase().replace('í', "i");
        let status = match role {
            MemberRole::Viewer => AvailabilityStatus::Offline,
            _ => AvailabilityStatus::Online,
        };
        let member = NewMember {
            name: name.to_owned(),
            email: format!("{first}@example.com"),
            role,
            availability: Availability { status, until: None },
            capacity,
            languages: languages.iter().map(|language| (*language).to_owned()).collect(),
            ..NewMember::default()
        };
        made.push(team::add(tx, workspace, member)?.id);
    }
    let days = ["monday", "tuesday", "wednesday", "thursday", "friday"];
    let mut hours: Vec<_> = days
        .into_iter()
        .flat_map(|day| [("10:00", "14:00"), ("17:00", "20:30")].map(|(open, close)| (day, open, close)))
        .collect();
    hours.push(("saturday", "10:00", "14:00"));
    let hours: Vec<_> = hours
        .into_iter()
        .map(|(day, open, close)| json!({ "day": day, "open": open, "close": close }))
        .collect();
    let profile = json!({
        "name": "Casa Nordica", "legal_name": "Casa Nordica S.L.", "vertical": "retail", "time_zone": "Europe/Madrid",
        "description": "Toys, things for the home, and clothing that lasts.", "currency": "EUR", "locale": "es-ES",
        "country": "ES", "address": "Calle Mayor 12, 28013 Madrid", "email": "hello@example.com",
        "phone": "+34911234567", "website": "https://example.com", "hours": hours,
        "holidays": [
            { "date": "2026-01-01", "name": "New Year's Day", "yearly": true },
            { "date": "2026-01-06", "name": "Epiphany", "yearly": true },
            { "date": "2026-12-25", "name": "Christmas Day", "yearly": true },
        ],
    });
    let profile: BusinessPatch = serde_json::from_value(profile).map_err(Error::internal)?;
    business::set(tx, workspace, profile)?;
    Ok(made)
}
