//! E-mail addresses by which accounts are found.

use model::{Error, Result};
use std::fmt;

/// The greatest length of an address, in characters (RFC 5321).
const MOST_CHARACTERS: usize = 254;

/// An e-mail address. Two that differ in case only are the same account's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    text: String,
    key: String,
}

impl Email {
    /// Parses an address that a person typed.
    ///
    /// # Errors
    /// `validation_error` for a text that is no address.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let is_address = text.len() <= 4 * MOST_CHARACTERS
            && text.chars().count() <= MOST_CHARACTERS
            && !text.chars().any(|letter| letter.is_control() || letter.is_whitespace())
            && text.rsplit_once('@').is_some_and(|(local, domain)| {
                !local.is_empty() && !local.contains('@') && !domain.is_empty()
            });
        if !is_address {
            return Err(Error::invalid("email", "must be an e-mail address"));
        }
        Ok(Self { text: text.to_owned(), key: text.to_lowercase() })
    }

    /// Returns the address as it was typed.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the form in which addresses are compared.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the part before the `@`, in the form in which addresses are compared.
    pub(crate) fn local_part(&self) -> &str {
        self.key.rsplit_once('@').map_or("", |(local, _)| local)
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_without_case_and_space() {
        let email = Email::parse(" Marta.Ruiz@Example.com\n").unwrap();
        assert_eq!((email.as_str(), email.key()), ("Marta.Ruiz@Example.com", "marta.ruiz@example.com"));
        assert_eq!(email.local_part(), "marta.ruiz");
    }

    #[test]
    fn other_texts_are_refused() {
        let long = format!("{}@example.com", "a".repeat(250));
        for text in ["", "@", "a@", "@b", "a b@c", "a@b@c", "a\0@b", "marta", &long, &"@".repeat(1 << 20)] {
            let error = Email::parse(text).unwrap_err();
            assert_eq!(error.message(), "`email` must be an e-mail address", "{text:?}");
        }
    }
}
