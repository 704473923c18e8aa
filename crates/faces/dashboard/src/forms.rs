//! Forms: their fields, where they come from, and the token that proves that this service made them.

use crate::site::Site;
use auth::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::{Markup, html};
use operation::RawRequest;
use std::borrow::Cow;
use url::form_urlencoded;

/// The field with the form token.
pub const TOKEN_FIELD: &str = "form_token";
/// The place for which form tokens are signed.
const PLACE: &str = "form_token";

/// What forms are bound to: the session, or a cookie of the browser before there is a session. A token that another person
/// or browser got is worth nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormKey(String);

impl FormKey {
    /// Returns the key of a session.
    pub(crate) fn of_session(id: &str) -> Self {
        Self(format!("session:{id}"))
    }

    /// Returns the key of a browser without a session.
    pub(crate) fn of_browser(cookie: &str) -> Self {
        Self(format!("browser:{cookie}"))
    }

    /// Returns the token for forms.
    pub(crate) fn token(&self, seal: &Seal) -> String {
        URL_SAFE_NO_PAD.encode(seal.sign(PLACE, &self.0))
    }

    /// Returns whether a token was made for this key.
    pub(crate) fn is_token(&self, seal: &Seal, token: &str) -> bool {
        URL_SAFE_NO_PAD.decode(token).is_ok_and(|signature| seal.is_signed(PLACE, &self.0, &signature))
    }
}

/// Returns a field that people do not see.
pub fn hidden(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}

/// The fields of a form that was sent.
#[derive(Debug, Clone)]
pub struct Form {
    fields: Vec<(String, String)>,
}

impl Form {
    /// Reads a body of the type `application/x-www-form-urlencoded`.
    pub fn parse(body: &[u8]) -> Self {
        let fields = form_urlencoded::parse(body);
        Self { fields: fields.map(|(name, value)| (name.into_owned(), value.into_owned())).collect() }
    }

    /// Returns the first value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a field, or an empty text.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Returns all values of a field, such as those of checkboxes.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// Returns the first value of a parameter of a query.
pub fn query_value<'a>(query: &'a str, name: &str) -> Option<Cow<'a, str>> {
    form_urlencoded::parse(query.as_bytes()).find(|(other, _)| other == name).map(|(_, value)| value)
}

/// Returns whether a request comes from a page of this service. Browsers say so in `Sec-Fetch-Site`, which no page can
/// forge. Where they do not, the `Origin` must be that of the configured base URL. A request with neither is refused.
pub fn is_same_origin(site: &Site, request: &RawRequest) -> bool {
    match request.header("sec-fetch-site") {
        Some(relation) => relation == "same-origin",
        None => request.header("origin").is_some_and(|origin| origin == site.origin()),
    }
}

/// Returns whether the body has this media type.
pub fn is_of_type(request: &RawRequest, media_type: &str) -> bool {
    let sent = request.header("content-type").unwrap_or_default();
    sent.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_belongs_to_its_session_or_browser() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let (session, browser) = (FormKey::of_session("ses_1"), FormKey::of_browser("ses_1"));
        let token = session.token(&seal);
        assert!(session.is_token(&seal, &token));
        assert!(!browser.is_token(&seal, &token));
        assert!(!FormKey::of_session("ses_2").is_token(&seal, &token));
        assert!(!session.is_token(&Seal::new(&[8; 32]).unwrap(), &token));
        for wrong in ["", "x", &token[1..], &format!("{token}A")] {
            assert!(!session.is_token(&seal, wrong), "{wrong}");
        }
    }
}
