//! What a request to the token endpoint and its siblings says about the client (RFC 6749, 2.3; RFC 7523, 2.2).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

/// The only type of assertion that is accepted.
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The credentials of a client, as they were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The `client_id`, if the request names it. An assertion names it too.
    pub client_id: Option<String>,
    /// The proof.
    pub proof: Proof,
}

/// How a client proves who it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Proof {
    /// Not at all.
    None,
    /// By a secret in the header.
    Basic(String),
    /// By a secret in the body.
    Post(String),
    /// By a signed JWT.
    Assertion(String),
}

/// Omits secrets.
impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Basic(_) => "Basic",
            Self::Post(_) => "Post",
            Self::Assertion(_) => "Assertion",
        })
    }
}

/// Why credentials cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialsError {
    /// The request is malformed: `invalid_request`.
    Request(&'static str),
    /// The header is not one of a client: `invalid_client`.
    Client(&'static str),
}

impl Credentials {
    /// Reads credentials from all values of the header `Authorization` and from the parameters of the body.
    ///
    /// # Errors
    /// [`CredentialsError`].
    pub fn read<'a>(
        headers: &[&[u8]],
        parameter: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, CredentialsError> {
        let named = parameter("client_id").map(str::to_owned);
        let in_body =
            (parameter("client_secret"), parameter("client_assertion"), parameter("client_assertion_type"));
        match (headers, in_body) {
            ([], (None, None, None)) => Ok(Self { client_id: named, proof: Proof::None }),
            ([], (Some(secret), None, None)) => {
                Ok(Self { client_id: named, proof: Proof::Post(secret.to_owned()) })
            }
            ([], (None, Some(assertion), Some(ASSERTION_TYPE))) => {
                Ok(Self { client_id: named, proof: Proof::Assertion(assertion.to_owned()) })
            }
            ([], (None, _, _)) => Err(CredentialsError::Request(
                "`client_assertion` and the `client_assertion_type` jwt-bearer must be sent together",
            )),
            ([header], (None, None, None)) => {
                let (id, secret) = basic(header)?;
                if named.is_some_and(|named| named != id) {
                    let rule = "`client_id` differs from that in the header `Authorization`";
                    return Err(CredentialsError::Request(rule));
                }
                Ok(Self { client_id: Some(id), proof: Proof::Basic(secret) })
            }
            ([_, _, ..], _) => Err(CredentialsError::Request("the header `Authorization` must be sent once")),
            _ => Err(CredentialsError::Request("the client must authenticate in one way only")),
        }
    }
}

/// Reads the header `Authorization: Basic`. Both parts are encoded like forms (RFC 6749, 2.3.1).
fn basic(header: &[u8]) -> Result<(String, String), CredentialsError> {
    let malformed =
        CredentialsError::Client("the header `Authorization` must be Basic, with client_id and secret");
    let text = std::str::from_utf8(header).map_err(|_| malformed)?;
    let (scheme, encoded) = text.split_once(' ').ok_or(malformed)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(malformed);
    }
    let decoded = STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded.ok_or(malformed)?;
    let (id, secret) = decoded.split_once(':').ok_or(malformed)?;
    Ok((form_decoded(id).ok_or(malformed)?, form_decoded(secret).ok_or(malformed)?))
}

fn form_decoded(text: &str) -> Option<String> {
    // A name without a value is decoded like a value, and an unencoded `&` or `=` stays as it is.
    let text: Cow<'_, str> = text.replace('&', "%26").replace('=', "%3D").into();
    let (name, _) = url::form_urlencoded::parse(text.as_bytes()).next().unwrap_or_default();
    (!name.contains('\u{fffd}')).then(|| name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[&str], form: &[(&str, &'static str)]) -> Result<Credentials, CredentialsError> {
        let headers: Vec<&[u8]> = headers.iter().map(|header| header.as_bytes()).collect();
        Credentials::read(&headers, |wanted| {
            form.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
        })
    }

    fn header(pair: &str) -> String {
        format!("Basic {}", STANDARD.encode(pair))
    }

    fn named(id: &str, proof: Proof) -> Result<Credentials, CredentialsError> {
        Ok(Credentials { client_id: Some(id.to_owned()), proof })
    }

    #[test]
    fn each_way_is_read() {
        let post = [("client_id", "app_1"), ("client_secret", "s")];
        assert_eq!(read(&[], &post), named("app_1", Proof::Post("s".to_owned())));
        assert_eq!(read(&[], &[("client_id", "app_1")]), named("app_1", Proof::None));
        let basic = named("app_1", Proof::Basic("s:t".to_owned()));
        assert_eq!(read(&[&header("app_1:s:t")], &[]), basic);
        assert_eq!(read(&[&header("app%5F1:s%3At")], &[("client_id", "app_1")]), basic);
        assert_eq!(read(&[&header("app_1:s=")], &[]), named("app_1", Proof::Basic("s=".to_owned())));
        let assertion = [("client_assertion", "a.b.c"), ("client_assertion_type", ASSERTION_TYPE)];
        let expected = Credentials { client_id: None, proof: Proof::Assertion("a.b.c".to_owned()) };
        assert_eq!(read(&[], &assertion), Ok(expected));
    }

    #[test]
    fn two_ways_are_none() {
        let basic = header("app_1:s");
        let secret = ("client_secret", "s");
        let assertion = ("client_assertion", "a.b.c");
        let kind = ("client_assertion_type", ASSERTION_TYPE);
        for (headers, form) in [
            (vec![basic.as_str()], vec![secret]),
            (vec![basic.as_str()], vec![assertion, kind]),
            (vec![], vec![secret, assertion, kind]),
            (vec![basic.as_str(), basic.as_str()], vec![]),
            (vec![basic.as_str()], vec![("client_id", "app_2")]),
            (vec![], vec![assertion]),
            (vec![], vec![kind]),
            (vec![], vec![assertion, ("client_assertion_type", "saml2-bearer")]),
        ] {
            let read = read(&headers, &form);
            assert!(matches!(read, Err(CredentialsError::Request(_))), "{headers:?} {form:?}: {read:?}");
        }
        for header in ["", "Basic", "Basic !", "Bearer svc_live_x", &header("app_1"), "Basic gICA"] {
            let read = read(&[header], &[]);
            assert!(matches!(read, Err(CredentialsError::Client(_))), "{header}: {read:?}");
        }
    }
}
