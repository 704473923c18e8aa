//! The profile of a business: reading and changing it.

use crate::hours::Week;
use crate::locale::is_locale;
use crate::model::{BusinessPatch, BusinessProfile, Holiday, OpeningHours, Profile};
use crate::retention;
use crate::schema::business_profiles;
use auth::workspaces;
use calendar::DayHours;
use chrono_tz::Tz;
use diesel::prelude::*;
use fields::invisible::trimmed;
use fields::value::{email, is_email, is_url};
use model::{Error, FieldError, JsonText, Result, Timestamp, WorkspaceId};
use ports::{BUSINESS_FACTS, BusinessCalendar, Opening};
use records::shape;
use std::collections::BTreeMap;
use store::{Read, Tx, each};

/// The maximum number of opening hours in a week.
const MOST_HOURS: usize = 70;
/// The maximum number of holidays.
const MOST_HOLIDAYS: usize = 200;

/// The implementation of the port [`BusinessCalendar`].
#[derive(Debug, Clone, Copy)]
pub struct Calendar;

impl BusinessCalendar for Calendar {
    fn country(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Option<String>> {
        Ok(load(read, workspace)?.and_then(|(profile, _)| profile.country))
    }

    fn time_zone(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Tz> {
        Ok(load(read, workspace)?.map_or(Tz::UTC, |(profile, _)| profile.zone()))
    }

    fn opening(&self, read: &mut Read, workspace: WorkspaceId, at: Timestamp) -> Result<Option<Opening>> {
        Ok(load(read, workspace)?.and_then(|(profile, _)| profile.week().opening(at)))
    }

    fn facts(&self, read: &mut Read, workspace: WorkspaceId) -> Result<BTreeMap<&'static str, String>> {
        let profile = serde_json::to_value(show(read, workspace)?).map_err(Error::internal)?;
        let fact = |name| Some((name, profile.get(name)?.as_str()?.to_owned()));
        Ok(BUSINESS_FACTS.into_iter().filter_map(fact).collect())
    }
}

/// Returns the profile of a workspace's business, and whether it is open now.
///
/// # Errors
/// `workspace_not_found`.
pub fn show(read: &mut Read, workspace: WorkspaceId) -> Result<BusinessProfile> {
    let (profile, updated_at) = load(read, workspace)?
        .map_or_else(Default::default, |(profile, updated_at)| (profile, Some(updated_at)));
    let opening = profile.week().opening(read.now());
    let time_zone = profile.zone().name().to_owned();
    let name = match profile.name {
        Some(name) => name,
        None => workspaces::by_id(read, workspace)?.name,
    };
    Ok(BusinessProfile {
        object: "business",
        name,
        legal_name: profile.legal_name,
        description: profile.description,
        vertical: profile.vertical,
        time_zone,
        currency: profile.currency,
        locale: profile.locale,
        country: profile.country,
        address: profile.address,
        email: profile.email,
        phone: profile.phone,
        website: profile.website,
        hours: profile.hours.unwrap_or_default(),
        holidays: profile.holidays.unwrap_or_default(),
        is_open_now: opening.map(|opening| opening == Opening::Open),
        next_open_at: match opening {
            Some(Opening::Closed(next)) => next,
            Some(Opening::Open) | None => None,
        },
        retention: profile.retention,
        updated_at,
    })
}

/// Changes the profile of a workspace's business.
///
/// # Errors
/// `validation_error` with all problems.
pub fn set(tx: &mut Tx, workspace: WorkspaceId, patch: BusinessPatch) -> Result<BusinessProfile> {
    tx.lock(&format!("business {workspace}"))?;
    let mut profile = load(tx, workspace)?.map(|(profile, _)| profile).unwrap_or_default();
    let country = profile.country.clone();
    profile.apply(patch);
    profile.check()?;
    if profile.country != country {
        shape::bump_all(tx, workspace)?;
    }
    let (now, text) = (tx.now(), JsonText::of(&profile));
    each!(tx.connection(), |connection| diesel::insert_into(business_profiles::table)
        .values((
            business_profiles::workspace_id.eq(workspace),
            business_profiles::profile.eq(&text),
            business_profiles::created_at.eq(now),
            business_profiles::updated_at.eq(now),
        ))
        .on_conflict(business_profiles::workspace_id)
        .do_update()
        .set((business_profiles::profile.eq(&text), business_profiles::updated_at.eq(now)))
        .execute(connection))?;
    show(tx, workspace)
}

fn load(read: &mut Read, workspace: WorkspaceId) -> Result<Option<(Profile, Timestamp)>> {
    let row: Option<(JsonText, Timestamp)> = business_profiles::table
        .find(workspace)
        .select((business_profiles::profile, business_profiles::updated_at))
        .first(read.connection())
        .optional()?;
    row.map(|(profile, updated_at)| Ok((profile.parse()?, updated_at))).transpose()
}

impl Profile {
    fn zone(&self) -> Tz {
        self.time_zone.as_deref().and_then(|name| name.parse().ok()).unwrap_or(Tz::UTC)
    }

    fn week(&self) -> Week<'_> {
        Week {
            zone: self.zone(),
            hours: self.hours.as_deref().unwrap_or_default(),
            holidays: self.holidays.as_deref().unwrap_or_default(),
        }
    }

    /// Checks and normalizes the values.
    ///
    /// # Errors
    /// `validation_error` with all problems.
    fn check(&mut self) -> Result<()> {
        let mut wrong = Vec::new();
        let texts = [
            ("name", &mut self.name, 120),
            ("legal_name", &mut self.legal_name, 120),
            ("description", &mut self.description, 2_000),
            ("address", &mut self.address, 500),
            ("website", &mut self.website, 2_048),
            ("email", &mut self.email, 254),
        ];
        for (param, text, most) in texts {
            let Some(text) = text else { continue };
            *text = match (param, email(text)) {
                ("email", Some(address)) => address,
                _ => trimmed(text).to_owned(),
            };
            if !(1..=most).contains(&text.chars().count()) || text.contains('\0') {
                wrong.push(FieldError::new(param, format_args!("must have 1 to {most} characters")));
            }
        }
        let country = self.country.as_deref().and_then(country);
        let phone = self.phone.take().map(|text| e164(&text, country).ok_or(text));
        let is_currency = |code: &str| code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase());
        type Rule<'a> = (&'a str, &'a Option<String>, fn(&str) -> bool, &'a str);
        let rules: [Rule<'_>; 6] = [
            (
                "time_zone",
                &self.time_zone,
                |name| name.parse::<Tz>().is_ok(),
                "a time zone such as Europe/Madrid",
            ),
            ("currency", &self.currency, is_currency, "an ISO 4217 code such as EUR"),
            ("locale", &self.locale, is_locale, "a language and region such as es-ES"),
            ("country", &self.country, |code| self::country(code).is_some(), "an ISO 3166 code such as ES"),
            ("email", &self.email, is_email, "an email address"),
            ("website", &self.website, is_url, "an http or https address"),
        ];
        for (param, value, is_valid, what) in rules {
            if value.as_deref().is_some_and(|value| !is_valid(value)) {
                wrong.push(FieldError::new(param, format_args!("must be {what}")));
            }
        }
        match phone {
            Some(Err(_)) => {
                let rule = "must be a telephone number, with + and the country code unless `country` is set";
                wrong.push(FieldError::new("phone", rule));
            }
            known => self.phone = known.and_then(Result::ok),
        }
        check_hours(self.hours.as_deref().unwrap_or_default(), &mut wrong);
        check_holidays(self.holidays.as_deref().unwrap_or_default(), &mut wrong);
        retention::check(self.retention, &mut wrong);
        Error::all_invalid(wrong).map_or(Ok(()), Err)
    }
}

fn check_hours(hours: &[OpeningHours], wrong: &mut Vec<FieldError>) {
    if hours.len() > MOST_HOURS {
        return wrong.push(FieldError::new("hours", format_args!("must have at most {MOST_HOURS} entries")));
    }
    let hours: Vec<DayHours> = hours.iter().map(|hours| hours.minutes()).collect();
    for (place, one) in hours.iter().enumerate() {
        let param = format!("hours[{place}]");
        if !one.are_valid() {
            wrong.push(FieldError::new(param, "must open before 24:00, and close at another time"));
        } else if hours.iter().take(place).any(|other| one.overlap(*other)) {
            wrong.push(FieldError::new(param, "must not overlap other hours"));
        }
    }
}

fn check_holidays(holidays: &[Holiday], wrong: &mut Vec<FieldError>) {
    if holidays.len() > MOST_HOLIDAYS {
        let rule = format!("must have at most {MOST_HOLIDAYS} days");
        return wrong.push(FieldError::new("holidays", rule));
    }
    for (place, one) in holidays.iter().enumerate() {
        let is_text = |name: &String| (1..=120).contains(&name.chars().count()) && !name.contains('\0');
        if !one.name.as_ref().is_none_or(is_text) {
            wrong.push(FieldError::new(format!("holidays[{place}].name"), "must have 1 to 120 characters"));
        }
        if holidays.iter().take(place).any(|other| other.date == one.date) {
            wrong.push(FieldError::new(format!("holidays[{place}].date"), "must be another day"));
        }
    }
}

/// Parses an ISO 3166-1 alpha-2 code.
fn country(code: &str) -> Option<phonenumber::country::Id> {
    Some(code).filter(|code| code.bytes().all(|byte| byte.is_ascii_uppercase()))?.parse().ok()
}

/// Formats a telephone number as E.164.
fn e164(text: &str, country: Option<phonenumber::country::Id>) -> Option<String> {
    let number = phonenumber::parse(country, text).ok().filter(phonenumber::is_valid)?;
    Some(number.format().mode(phonenumber::Mode::E164).to_string())
}
