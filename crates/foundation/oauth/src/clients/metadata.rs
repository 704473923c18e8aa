//! The metadata with which clients describe themselves, in a document of theirs or in a request to register (RFC 7591).

use super::redirect;
use model::string_enum;
use serde::Deserialize;
use serde_json::Value;

/// The maximum number of redirect addresses.
const MOST_REDIRECTS: usize = 20;
/// The maximum length of a name, in characters.
const LONGEST_NAME: usize = 80;

string_enum! {
    /// How a client proves at the token endpoint who it is.
    #[derive(Hash)]
    pub enum AuthMethod {
        /// It does not: its `code_verifier` and its refresh tokens are the only proof.
        None = "none",
        /// A secret in the header `Authorization`.
        ClientSecretBasic = "client_secret_basic",
        /// A secret in the body.
        ClientSecretPost = "client_secret_post",
        /// A JWT that is signed with a private key.
        PrivateKeyJwt = "private_key_jwt",
    }
}

impl AuthMethod {
    /// Returns whether the client has a secret.
    pub fn has_secret(self) -> bool {
        matches!(self, Self::ClientSecretBasic | Self::ClientSecretPost)
    }
}

/// Where the public keys of a client are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A JSON Web Key Set as text.
    Inline(String),
    /// The URL of a JSON Web Key Set.
    Url(String),
}

impl KeySource {
    pub(super) fn text(&self) -> &str {
        let (Self::Inline(text) | Self::Url(text)) = self;
        text
    }
}

/// What is used of the metadata of a client, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The name, without characters that have no shape. `None` if there is none.
    pub name: Option<String>,
    /// The redirect addresses; at least one.
    pub redirect_uris: Vec<String>,
    /// How the client authenticates.
    pub method: AuthMethod,
    /// Its public keys. Present exactly for [`AuthMethod::PrivateKeyJwt`].
    pub keys: Option<KeySource>,
}

/// Why metadata is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataError {
    /// A redirect address.
    Redirect(String),
    /// Anything else.
    Other(String),
}

impl MetadataError {
    /// Returns the violated rule.
    pub fn rule(&self) -> &str {
        let (Self::Redirect(rule) | Self::Other(rule)) = self;
        rule
    }
}

/// The members that are read. Unknown ones are ignored, as RFC 7591 demands.
#[derive(Deserialize)]
pub(super) struct RawMetadata {
    pub(super) client_id: Option<String>,
    client_name: Option<String>,
    redirect_uris: Option<Vec<String>>,
    token_endpoint_auth_method: Option<String>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
    jwks: Option<Value>,
    jwks_uri: Option<String>,
    pub(super) client_secret: Option<Value>,
}

/// How strictly metadata is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Every redirect address must be acceptable, because the client gets an answer that it can act on.
    Registration,
    /// Redirect addresses of other kinds are left out, because a document serves many servers.
    Document,
}

impl RawMetadata {
    /// Parses metadata.
    pub(super) fn parse(json: &[u8]) -> Result<Self, MetadataError> {
        // The error of the parser names types of Rust, so it is not shown.
        serde_json::from_slice(json)
            .map_err(|_| other("must be a JSON object whose members have the types of RFC 7591"))
    }

    /// Checks the metadata. `default` is the method of a client that names none.
    pub(super) fn check(
        self,
        strictness: Strictness,
        default: AuthMethod,
    ) -> Result<Metadata, MetadataError> {
        let method = match self.token_endpoint_auth_method.as_deref() {
            None => default,
            Some(word) => AuthMethod::parse(word).ok_or_else(|| {
                other("`token_endpoint_auth_method` must be none, client_secret_basic, client_secret_post or private_key_jwt")
            })?,
        };
        if self.grant_types.is_some_and(|types| !types.iter().any(|word| word == "authorization_code")) {
            return Err(other("`grant_types` must contain authorization_code"));
        }
        if self.response_types.is_some_and(|types| !types.iter().any(|word| word == "code")) {
            return Err(other("`response_types` must contain code"));
        }
        let keys = match (method, self.jwks, self.jwks_uri) {
            (AuthMethod::PrivateKeyJwt, Some(set), None) if set.get("keys").is_some_and(Value::is_array) => {
                Some(KeySource::Inline(set.to_string()))
            }
            (AuthMethod::PrivateKeyJwt, None, Some(url)) => Some(KeySource::Url(url)),
            (AuthMethod::PrivateKeyJwt, _, _) => {
                return Err(other("private_key_jwt needs either `jwks` with `keys`, or `jwks_uri`"));
            }
            _ => None,
        };
        Ok(Metadata {
            name: self.client_name.as_deref().map(clean_name).filter(|name| !name.is_empty()),
            redirect_uris: redirects(self.redirect_uris.unwrap_or_default(), strictness)?,
            method,
            keys,
        })
    }
}

/// Checks redirect addresses.
pub(super) fn redirects(
    addresses: Vec<String>,
    strictness: Strictness,
) -> Result<Vec<String>, MetadataError> {
    if addresses.len() > MOST_REDIRECTS {
        return Err(MetadataError::Redirect(format!("must be at most {MOST_REDIRECTS}")));
    }
    let mut accepted = Vec::with_capacity(addresses.len());
    for (place, address) in addresses.into_iter().enumerate() {
        match redirect::check(&address) {
            Ok(()) if accepted.contains(&address) => {}
            Ok(()) => accepted.push(address),
            Err(_) if strictness == Strictness::Document => {}
            Err(rule) => return Err(MetadataError::Redirect(format!("redirect_uris[{place}] {rule}"))),
        }
    }
    if accepted.is_empty() {
        let rule = "redirect_uris must have an address that begins with https, with http on loopback, or with the scheme of an app";
        return Err(MetadataError::Redirect(rule.to_owned()));
    }
    Ok(accepted)
}

/// Returns a name as it may be shown: one line, without control, bidirectional and zero-width characters, at most 80
/// characters.
pub(super) fn clean_name(name: &str) -> String {
    let visible: String = name.chars().filter(|character| !is_deceptive(*character)).collect();
    let line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(LONGEST_NAME).collect::<String>().trim_end().to_owned()
}

/// Returns whether a character has no shape of its own, so that two names with and without it look alike.
fn is_deceptive(character: char) -> bool {
    (character.is_control() && !character.is_whitespace())
        || matches!(character,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

fn other(rule: &str) -> MetadataError {
    MetadataError::Other(rule.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(metadata: &Value, strictness: Strictness) -> Result<Metadata, MetadataError> {
        RawMetadata::parse(metadata.to_string().as_bytes())?.check(strictness, AuthMethod::ClientSecretBasic)
    }

    #[test]
    fn what_is_missing_has_the_default_of_the_standard() {
        let read = read(&json!({ "redirect_uris": ["https://a.example/cb"] }), Strictness::Registration);
        let expected = Metadata {
            name: None,
            redirect_uris: vec!["https://a.example/cb".to_owned()],
            method: AuthMethod::ClientSecretBasic,
            keys: None,
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn wrong_metadata_names_the_rule() {
        let address = json!(["https://a.example/cb"]);
        for (metadata, words) in [
            (json!([]), "JSON object"),
            (json!({ "redirect_uris": "https://a.example/cb" }), "JSON object"),
            (
                json!({ "redirect_uris": address, "token_endpoint_auth_method": "tls_client_auth" }),
                "auth_method",
            ),
            (json!({ "redirect_uris": address, "grant_types": ["client_credentials"] }), "grant_types"),
            (json!({ "redirect_uris": address, "response_types": ["token"] }), "response_types"),
            (json!({ "redirect_uris": address, "token_endpoint_auth_method": "private_key_jwt" }), "jwks"),
            (
                json!({ "redirect_uris": address, "token_endpoint_auth_method": "private_key_jwt", "jwks": { "keys": [] },
                        "jwks_uri": "https://a.example/keys" }),
                "either",
            ),
        ] {
            let error = read(&metadata, Strictness::Registration).unwrap_err();
            assert!(
                matches!(&error, MetadataError::Other(rule) if rule.contains(words)),
                "{metadata}: {error:?}"
            );
        }
        for addresses in [json!([]), json!(["http://a.example/cb"]), json!(["https://a.example/cb", "x:y"])] {
            let error = read(&json!({ "redirect_uris": addresses }), Strictness::Registration).unwrap_err();
            assert!(matches!(error, MetadataError::Redirect(_)), "{addresses}: {error:?}");
        }
        assert!(matches!(read(&json!({}), Strictness::Registration), Err(MetadataError::Redirect(_))));
    }

    #[test]
    fn a_document_for_many_servers_may_name_addresses_of_other_kinds() {
        let metadata =
            json!({ "redirect_uris": ["intent://app/cb", "cursor://app/cb", "http://127.0.0.1/cb"] });
        let read_uris = read(&metadata, Strictness::Document).unwrap().redirect_uris;
        assert_eq!(read_uris, ["cursor://app/cb", "http://127.0.0.1/cb"]);
        let metadata = json!({ "redirect_uris": ["intent://app/cb"] });
        assert!(read(&metadata, Strictness::Document).is_err());
    }

    #[test]
    fn names_are_one_line_of_characters_with_a_shape() {
        for (name, shown) in [
            ("  Acme\n Desk ", "Acme Desk"),
            ("Ac\u{200b}me\u{202e}ksed", "Acmeksed"),
            ("\u{feff}\u{2066}", ""),
            ("Süß 漢字", "Süß 漢字"),
        ] {
            assert_eq!(clean_name(name), shown);
        }
        assert_eq!(clean_name(&"x".repeat(500)).len(), 80);
    }
}
