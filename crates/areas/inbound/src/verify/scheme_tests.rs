//! Schemes against published examples that name addresses of their own, and their pieces.

use super::request::Incoming;
use super::scheme::{Refusal, Scheme};
use super::signature::{Part, Secret, public_key, signed_parts, standard_key, to_hex};
use super::verification::{Kind, Secrets, Verification};
use bytes::Bytes;
use model::Timestamp;
use proptest::prelude::*;
use std::net::IpAddr;

fn scheme(kind: Kind, secret: &str) -> Scheme {
    let verification = Verification { kind, secrets: 1, ..Verification::default() };
    let secrets = Secrets { secrets: vec![secret.to_owned()], verify_token: None };
    Scheme::compile(&verification, &secrets).unwrap()
}

fn check_twilio(query: &str, signature: &str, body: &[u8]) -> Result<(), Refusal> {
    let headers = [("x-twilio-signature".to_owned(), Bytes::copy_from_slice(signature.as_bytes()))];
    let request = Incoming {
        method: "POST",
        url: format!("https://mycompany.com/myapp.php?{query}"),
        query,
        headers: &headers,
        peer: IpAddr::from([127, 0, 0, 1]),
        body,
        now: Timestamp::from_millis(0),
    };
    scheme(Kind::Twilio, "12345").check(&request)
}

/// The examples of Twilio's own libraries.
#[test]
fn twilios_examples_are_verified() {
    let form =
        b"CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212";
    let right = "RSOYDt4T1cUTdK1PDd93/VVr8B8=";
    assert_eq!(check_twilio("foo=1&bar=2", right, form), Ok(()));
    assert_eq!(check_twilio("foo=1&bar=3", right, form), Err(Refusal::WrongSignature));
    assert_eq!(check_twilio("foo=1&bar=2", right, b"Digits=1234"), Err(Refusal::WrongSignature));
    let repeated = b"Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234";
    assert_eq!(check_twilio("foo=1&bar=2", "IK+Dwps556ElfBT0I3Rgjkr1wJU=", repeated), Ok(()));
}

#[test]
fn templates_are_read() {
    let text = |text: &str| Part::Text(text.to_owned());
    assert_eq!(
        signed_parts("v0:{timestamp}:{body}"),
        Ok(vec![text("v0:"), Part::Timestamp, text(":"), Part::Body])
    );
    assert_eq!(signed_parts("{url}{body}!"), Ok(vec![Part::Url, Part::Body, text("!")]));
    for wrong in ["", "body", "{timestamp}", "{body", "{id}{body}", "{body}{"] {
        assert!(signed_parts(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn keys_are_read_in_both_spellings() {
    let hex = "dd74e21b0698ca4a6a983a7134a422d4b353611e0029dee93197d0cb57efee99";
    let base64 = "3XTiGwaYykpqmDpxNKQi1LNTYR4AKd7pMZfQy1fv7pk=";
    assert_eq!(public_key(hex), public_key(base64));
    assert_eq!(public_key(hex).map(|key| to_hex(&key)).as_deref(), Some(hex));
    for wrong in ["", "dd74", "zz", "3XTiGwaYykpqmDpxNKQi1LNTYR4AKd7pMZfQy1fv7g=="] {
        assert!(public_key(wrong).is_none(), "{wrong}");
    }
    for (text, is_key) in [
        ("whsec_MfKQ9r8GKYqrTwjU", true),
        ("MfKQ9r8GKYqrTwjU", true),
        ("whsec_", false),
        ("whpk_MfKQ", false),
    ] {
        assert_eq!(standard_key(text).is_some(), is_key, "{text}");
    }
}

proptest! {
    #[test]
    fn a_secret_is_nothing_but_itself(secret in "\\PC{1,20}", sent in "\\PC{0,20}") {
        let kept = Secret::new(secret.as_bytes());
        prop_assert!(kept.is(secret.as_bytes()));
        prop_assert_eq!(kept.is(sent.as_bytes()), secret == sent);
    }

    #[test]
    fn no_header_makes_a_check_panic(value in "\\PC{0,60}", body in "\\PC{0,20}") {
        let names = ["stripe-signature", "x-slack-signature", "x-slack-request-timestamp", "webhook-signature", "webhook-timestamp", "x-twilio-signature", "authorization"];
        let headers = names.map(|name| (name.to_owned(), Bytes::copy_from_slice(value.as_bytes())));
        let request = Incoming {
            method: "POST", url: String::new(), query: &value, headers: &headers, peer: IpAddr::from([127, 0, 0, 1]),
            body: body.as_bytes(), now: Timestamp::from_millis(0),
        };
        for kind in [Kind::Stripe, Kind::Slack, Kind::StandardWebhooks, Kind::Twilio, Kind::Bearer, Kind::MicrosoftGraph] {
            prop_assert!(scheme(kind, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").check(&request).is_err());
        }
    }
}
