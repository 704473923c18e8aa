//! What the command line takes: read and checked with the arguments, before anything is made or changed.

use auth::workspaces::is_slug;
use billing::ledger::GrantKind;
use business::team::{AvailabilityStatus, MemberRole};
use channels::ChannelProvider;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};
use egress::{HeaderName, Method};
use model::{Env, GrantId, KeyId, Plan, Scope, SubscriptionStatus, Timestamp};
use oauth::clients::AuthMethod;
use std::ffi::OsStr;

/// A whole number from `LEAST` to `MOST`. Arguments that take one have `allow_negative_numbers`, so that `-5` comes here
/// and is not taken for a flag.
pub(crate) fn whole<T: TryFrom<i64>, const LEAST: i64, const MOST: i64>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| (LEAST..=MOST).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match MOST {
        i64::MAX => format!("must be a whole number of at least {LEAST}"),
        _ => format!("must be a whole number from {LEAST} to {MOST}"),
    })
}

/// Whether code of functions and skills runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SandboxMode {
    /// It runs. Where the kernel lacks a protection, the log says so.
    On,
    /// It runs only with all protection.
    Required,
    /// It is refused.
    Off,
}

/// A limit, or that there is none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(pub(crate) Option<i64>);

/// A limit of at least `LEAST`, or `none`.
pub(crate) fn limit<const LEAST: i64, const MOST: i64>(text: &str) -> Result<Limit, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    let limit = whole::<i64, LEAST, MOST>(text).map_err(|rule| format!("{rule}, or none"))?;
    Ok(Limit(Some(limit)))
}

/// The id of a plan.
pub(crate) fn plan_id(text: &str) -> Result<String, String> {
    let is_id = (2..=40).contains(&text.len())
        && text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && text != Plan::NONE;
    let rule = "must be 2 to 40 lower-case letters, digits or _, beginning with a letter, and not none";
    is_id.then(|| text.to_owned()).ok_or_else(|| rule.to_owned())
}

/// What is told of a plan, or nothing.
pub(crate) fn description(text: &str) -> Result<String, String> {
    let is_short = text.chars().count() <= 500 && !text.contains('\0');
    is_short.then(|| text.trim().to_owned()).ok_or_else(|| "must have at most 500 characters".to_owned())
}

/// An ISO 4217 code.
pub(crate) fn currency(text: &str) -> Result<String, String> {
    let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase());
    is_code.then(|| text.to_owned()).ok_or_else(|| "must be three capital letters, such as EUR".to_owned())
}

/// A text that is sent to contacts, or an empty one.
pub(crate) fn message(text: &str) -> Result<String, String> {
    let most = conversations::messages::LONGEST_TEXT;
    if text.chars().count() > most {
        return Err(format!("must have at most {most} characters"));
    }
    Ok(text.trim().to_owned())
}

/// A number of bytes: at least 1 MiB.
pub(crate) fn size(text: &str) -> Result<i64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = match text.get(digits.len()..) {
        Some("MiB") => Some(1 << 20),
        Some("GiB") => Some(1 << 30),
        Some("TiB") => Some(1 << 40),
        _ => None,
    };
    let bytes = digits.parse::<i64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "must be a whole number of MiB, GiB or TiB, such as 512MiB".to_owned())
}

/// An address that HTTP can be spoken to.
pub(crate) fn http_url(text: &str) -> Result<String, String> {
    let url = egress::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    match url {
        Some(url) if url.host_str().is_some() => Ok(text.to_owned()),
        _ => Err("must be a URL that begins with http:// or https://".to_owned()),
    }
}

/// The address at which the world reaches the service. The path of the API is added to it.
pub(crate) fn base_url(text: &str) -> Result<String, String> {
    let url = http_url(text)?;
    match url.trim_end_matches('/').strip_suffix(rest::BASE) {
        Some(before) => Err(format!("must not end with the path of the API: write {before}")),
        None => Ok(url),
    }
}

/// An origin as browsers send it, without a path, or `*` for all.
pub(crate) fn origin(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_origin = || egress::Url::parse(text).is_ok_and(|url| url.origin().ascii_serialization() == text);
    if text == "*" || !text.contains('*') && http_url(text).is_ok() && is_origin() {
        return Ok(text.to_owned());
    }
    Err("must be an origin such as https://app.example.com, without a path, or *".to_owned())
}

/// An API key, as far as it can be told here: nothing that a header cannot carry.
pub(crate) fn api_key(text: &str) -> Result<String, String> {
    let is_visible = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_visible.then(|| text.to_owned()).ok_or_else(|| "must be visible characters, without spaces".to_owned())
}

/// The name of a profile, which becomes the name of a file.
pub(crate) fn profile_name(text: &str) -> Result<String, String> {
    let is_name = (1..=40).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_name.then(|| text.to_owned()).ok_or_else(|| "must be 1 to 40 letters, digits, - or _".to_owned())
}

/// A method of the API.
pub(crate) fn method(text: &str) -> Result<Method, String> {
    match text.to_ascii_uppercase().as_str() {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PATCH" => Ok(Method::PATCH),
        "PUT" => Ok(Method::PUT),
        "DELETE" => Ok(Method::DELETE),
        "HEAD" => Ok(Method::HEAD),
        _ => Err("must be GET, POST, PATCH, PUT, DELETE or HEAD".to_owned()),
    }
}

/// `name=value`.
pub(crate) fn query_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be name=value".to_owned()),
    }
}

/// `Name: value`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if HeaderName::from_bytes(name.as_bytes()).is_ok() => {
            Ok((name.to_owned(), value.trim().to_owned()))
        }
        _ => Err("must be `Name: value`".to_owned()),
    }
}

/// What people call a workspace, a partner or a key.
pub(crate) fn name(text: &str) -> Result<String, String> {
    match text.trim().chars().count() {
        1..=80 if !text.contains('\0') => Ok(text.to_owned()),
        _ => Err("must have 1 to 80 characters".to_owned()),
    }
}

/// A workspace's name in addresses.
pub(crate) fn slug(text: &str) -> Result<String, String> {
    let rule = "must be 3 to 40 lower-case letters or digits, at least one a letter, with single hyphens between them";
    is_slug(text).then(|| text.to_owned()).ok_or_else(|| rule.to_owned())
}

pub(crate) fn env(text: &str) -> Result<Env, String> {
    Env::parse(text).ok_or_else(|| "must be live or test".to_owned())
}

/// The scopes that one word of `--scopes` stands for.
#[derive(Clone)]
pub(crate) struct Scopes(pub(crate) Vec<Scope>);

/// Parses a word of `--scopes`: a scope, `all`, `read`, or an area such as `contacts:*`.
pub(crate) fn scopes(text: &str) -> Result<Scopes, String> {
    let text = text.trim();
    if let Some(scope) = Scope::parse(text).filter(|scope| !scope.is_retired()) {
        return Ok(Scopes(vec![scope]));
    }
    let area = text.strip_suffix('*').filter(|area| area.ends_with(':'));
    let is_meant = |scope: &Scope| match text {
        "all" => true,
        "read" => scope.as_str().ends_with(":read"),
        _ => area.is_some_and(|area| scope.as_str().starts_with(area)),
    };
    let meant: Vec<Scope> = Scope::of_workspaces().filter(is_meant).collect();
    if !meant.is_empty() {
        return Ok(Scopes(meant));
    }
    let is_area = |scope: Scope| scope.as_str().split(':').next() == Some(text);
    Err(if Scope::of_workspaces().any(is_area) {
        format!("is an area: write {text}:* for all of its scopes. `svc key create --help` lists them")
    } else {
        "is not a scope. `svc key create --help` lists them".to_owned()
    })
}

/// Parses a word of `--scopes`, and tells shells which words there are.
#[derive(Clone)]
pub(crate) struct ScopesParser;

impl TypedValueParser for ScopesParser {
    type Value = Scopes;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Scopes, clap::Error> {
        scopes.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = ["all", "read"].into_iter();
        Some(Box::new(words.chain(Scope::of_workspaces().map(Scope::as_str)).map(PossibleValue::new)))
    }
}

/// The long help of `--scopes`, with every scope of a workspace's key.
pub(crate) fn scopes_help() -> String {
    let all: Vec<&str> = Scope::of_workspaces().map(Scope::as_str).collect();
    format!(
        "What it may do, separated by commas: scopes, an area such as `contacts:*`, `read` for every scope that reads, or \
         `all`.\n\nThe scopes of a workspace's key are {}.",
        all.join(", ")
    )
}

pub(crate) fn grant_kind(text: &str) -> Result<GrantKind, String> {
    GrantKind::parse(text).ok_or_else(|| "must be purchase, plan, promo or adjustment".to_owned())
}

/// A state that a subscription can be put into; `energy_depleted` only shows what is so.
pub(crate) fn subscription(text: &str) -> Result<SubscriptionStatus, String> {
    let rule = "must be active, trialing, sponsored, past_due, canceled or inactive";
    SubscriptionStatus::parse(text)
        .filter(|status| *status != SubscriptionStatus::EnergyDepleted)
        .ok_or_else(|| rule.to_owned())
}

pub(crate) fn member_role(text: &str) -> Result<MemberRole, String> {
    MemberRole::parse(text).ok_or_else(|| "must be owner, admin, manager, agent or viewer".to_owned())
}

pub(crate) fn auth_method(text: &str) -> Result<AuthMethod, String> {
    AuthMethod::parse(text)
        .ok_or_else(|| "must be client_secret_basic, client_secret_post, private_key_jwt or none".to_owned())
}

pub(crate) fn availability(text: &str) -> Result<AvailabilityStatus, String> {
    AvailabilityStatus::parse(text).ok_or_else(|| "must be online, away or offline".to_owned())
}

pub(crate) fn channel_provider(text: &str) -> Result<ChannelProvider, String> {
    ChannelProvider::parse(text).ok_or_else(|| "must be cloud, partner or simulator".to_owned())
}

pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "must be an RFC 3339 time, such as 2027-01-01T00:00:00Z".to_owned())
}

pub(crate) fn key_id(text: &str) -> Result<KeyId, String> {
    KeyId::parse(text).ok_or_else(|| "must be the id of a key, such as svc key list shows it".to_owned())
}

pub(crate) fn grant_id(text: &str) -> Result<GrantId, String> {
    GrantId::parse(text).ok_or_else(|| "must be the id of a grant".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_without_the_path_of_the_api() {
        for text in ["https://svc.example", "https://svc.example/", "http://svc.example/behind/proxy"] {
            assert_eq!(base_url(text).as_deref(), Ok(text));
        }
        for text in ["https://svc.example/api/v1", "https://svc.example/api/v1/"] {
            let rule = "must not end with the path of the API: write https://svc.example".to_owned();
            assert_eq!(base_url(text), Err(rule), "{text}");
        }
    }

    #[test]
    fn origins_have_no_path() {
        for text in ["*", "https://app.example.com", "http://localhost:5173", "http://[::1]:3000"] {
            assert_eq!(origin(text).as_deref(), Ok(text));
        }
        for text in [
            "",
            "app.example.com",
            "https://app.example.com/",
            "https://app.example.com:443",
            "null",
            "https://*.example.com",
        ] {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(size("1MiB"), Ok(1_048_576));
        assert_eq!(size("20GiB"), Ok(20 << 30));
        assert_eq!(size("2TiB"), Ok(2 << 40));
        for text in [
            "",
            "0MiB",
            "1",
            "1024",
            "1GB",
            "1 GiB",
            "-1GiB",
            "1.5GiB",
            "GiB",
            "9223372036854775807TiB",
            "1KiB",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
