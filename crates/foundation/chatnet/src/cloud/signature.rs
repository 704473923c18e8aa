//! The signature of callbacks.

use ring::hmac;

/// The header with a callback's signature.
pub const SIGNATURE_HEADER: &str = "X-Hub-Signature-256";

/// Returns the signature of a callback's body in the format of the header.
#[must_use]
pub fn sign(secret: &str, raw: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), raw);
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

pub(super) fn is_signed(secrets: &[&str], signature: Option<&str>, raw: &[u8]) -> bool {
    let Some(sent) = signature.and_then(|signature| unhex(signature.trim().strip_prefix("sha256=")?)) else {
        return false;
    };
    // No early exit, so that the time does not reveal which secret matched.
    secrets.iter().filter(|secret| !secret.is_empty()).fold(false, |found, secret| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        hmac::verify(&key, raw, &sent).is_ok() | found
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 {
        return None;
    }
    text.as_bytes()
        .chunks(2)
        .map(|pair| {
            let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
            u8::try_from(digit(0)? * 16 + digit(1)?).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_secret_of_a_rotation_verifies_and_nothing_else() {
        let signature = sign("new", b"{}");
        assert!(is_signed(&["old", "new"], Some(&signature), b"{}"));
        assert!(is_signed(&["new"], Some(&signature.to_uppercase().replace("SHA256", "sha256")), b"{}"));
        assert!(!is_signed(&["old"], Some(&signature), b"{}"));
        assert!(!is_signed(&["new"], Some(&signature), b"{ }"));
        assert!(!is_signed(&["new"], None, b"{}"));
        assert!(!is_signed(&[""], Some(&sign("", b"{}")), b"{}"));
        for broken in ["", "sha256=", "sha1=00", "sha256=é", &signature[..70]] {
            assert!(!is_signed(&["new"], Some(broken), b"{}"), "{broken}");
        }
    }

    #[test]
    fn a_known_signature() {
        // printf '{}' | openssl dgst -sha256 -hmac secret
        assert_eq!(
            sign("secret", b"{}"),
            "sha256=77325902caca812dc259733aacd046b73817372c777b8d95b402647474516e13"
        );
    }
}
