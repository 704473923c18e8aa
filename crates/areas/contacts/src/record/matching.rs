//! Detection of contacts that may be the same person: match keys, and a score for two contacts.
//!
//! Comparing all pairs would take too long. So each contact has a few short match keys: the last digits of its telephone
//! number, its e-mail address without the parts that providers ignore, and its name with the words sorted. Only contacts
//! that share a key are compared.

use fields::Data;
use fields::terms::words;
use fields::text::name_key;
use model::text_enum;
use serde_json::Value;
use strsim::jaro_winkler;

/// The least score of two contacts that may be the same person.
pub(crate) const LEAST_SCORE: f64 = 0.5;

/// The least similarity from which two names count as spelled alike, from 0 to 1.
const ALIKE: f64 = 0.9;

/// The number of trailing digits of a telephone number that do not depend on how country and area code are written.
const LAST_DIGITS: usize = 8;

/// The most letters of a match key.
const MOST_LETTERS: usize = 48;

/// Local parts of e-mail addresses that many people share.
const COMMON_LOCALS: [&str; 12] = [
    "admin", "contact", "contacto", "contato", "hello", "hola", "info", "mail", "office", "sales", "support",
    "vendas",
];

text_enum! {
    /// Why two contacts may be the same person.
    pub enum MatchReason {
        /// Their telephone numbers end in the same digits.
        SamePhoneVariant = "same_phone_variant",
        /// Their e-mail addresses lead to the same mailbox.
        SameEmailVariant = "same_email_variant",
        /// Their e-mail addresses differ only behind the `@`.
        SameEmailName = "same_email_name",
        /// Their names have the same words.
        SameName = "same_name",
        /// Their names are spelled alike.
        SimilarName = "similar_name",
        /// They are of the same company.
        SameCompany = "same_company",
        /// They were born on the same day.
        SameBirthday = "same_birthday",
    }
}

impl MatchReason {
    /// The probability that two contacts are the same person, given only this reason.
    fn weight(self) -> f64 {
        match self {
            Self::SamePhoneVariant => 0.8,
            Self::SameEmailVariant => 0.9,
            Self::SameEmailName => 0.4,
            Self::SameName => 0.5,
            Self::SimilarName => 0.35,
            Self::SameCompany => 0.25,
            Self::SameBirthday => 0.4,
        }
    }
}

/// The values of a contact that are compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    phone: Option<String>,
    mailbox: Option<String>,
    local: Option<String>,
    name: Vec<String>,
    company: Option<String>,
    birthday: Option<String>,
}

impl Traits {
    /// Normalizes the values of a contact.
    pub(crate) fn of(data: &Data) -> Self {
        let text = |key: &str| {
            let text = data.get(key).and_then(Value::as_str).map(str::trim);
            text.filter(|text| !text.is_empty())
        };
        let mailbox = text("$email").and_then(mailbox);
        let local = mailbox.as_deref().and_then(|mailbox| mailbox.split_once('@')).map(|(local, _)| local);
        let local = local.filter(|local| local.chars().count() >= 5 && !COMMON_LOCALS.contains(local));
        Self {
            phone: text("$phone").and_then(last_digits),
            local: local.map(str::to_owned),
            name: text("$name").map(words).unwrap_or_default(),
            company: text("$company").map(|company| words(company).join(" ")),
            birthday: text("$birthday").map(str::to_owned),
            mailbox,
        }
    }

    /// Returns the match keys.
    fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        let mut add = |kind: &str, text: &str| {
            let key: String = format!("{kind}:{text}").chars().take(MOST_LETTERS).collect();
            if !keys.contains(&key) {
                keys.push(key);
            }
        };
        self.phone.iter().for_each(|phone| add("p", phone));
        self.mailbox.iter().for_each(|mailbox| add("e", mailbox));
        self.local.iter().for_each(|local| add("l", local));
        if let [first, .., last] = self.name.as_slice() {
            let mut sorted = self.name.clone();
            sorted.sort_unstable();
            add("n", &sorted.join(" "));
            // A middle name is often left out, and the first letters of a name are seldom misspelled.
            let start = |word: &str| word.chars().take(3).collect::<String>();
            add("f", &format!("{} {last}", start(first)));
            add("g", &format!("{first} {}", start(last)));
        }
        if let Some(first) = self.name.first() {
            let letter: String = first.chars().take(1).collect();
            self.company.iter().for_each(|company| add("c", &format!("{letter} {company}")));
            self.birthday.iter().for_each(|birthday| add("b", &format!("{letter} {birthday}")));
        }
        keys
    }

    /// Returns the probability that both are the same person, from 0 to 1, with the reasons.
    pub(crate) fn compare(&self, other: &Self) -> (f64, Vec<MatchReason>) {
        let same = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
        let mut reasons = Vec::new();
        let mut note = |holds: bool, reason| {
            if holds {
                reasons.push(reason);
            }
        };
        note(same(&self.phone, &other.phone), MatchReason::SamePhoneVariant);
        let is_same_mailbox = same(&self.mailbox, &other.mailbox);
        note(is_same_mailbox, MatchReason::SameEmailVariant);
        note(!is_same_mailbox && same(&self.local, &other.local), MatchReason::SameEmailName);
        match alike(&self.name, &other.name) {
            Some(true) => note(true, MatchReason::SameName),
            Some(false) => note(true, MatchReason::SimilarName),
            None => {}
        }
        note(same(&self.company, &other.company), MatchReason::SameCompany);
        note(same(&self.birthday, &other.birthday), MatchReason::SameBirthday);
        // The reasons are taken as independent evidence.
        let doubt: f64 = reasons.iter().map(|reason| 1.0 - reason.weight()).product();
        ((100.0 * (1.0 - doubt)).round() / 100.0, reasons)
    }
}

/// Compares two names. `Some(true)` means the same words, `Some(false)` a similar spelling, and `None` different
/// names.
fn alike(one: &[String], other: &[String]) -> Option<bool> {
    if one.len().min(other.len()) < 2 {
        // Too little evidence: many people share a first name.
        return None;
    }
    let sorted = |words: &[String]| {
        let mut sorted = words.to_vec();
        sorted.sort_unstable();
        sorted.join(" ")
    };
    if sorted(one) == sorted(other) {
        return Some(true);
    }
    let ends =
        |words: &[String]| words.first().zip(words.last()).map(|(first, last)| format!("{first} {last}"));
    let (one_ends, other_ends) = (ends(one)?, ends(other)?);
    let similarity = jaro_winkler(&one_ends, &other_ends).max(jaro_winkler(&sorted(one), &sorted(other)));
    (similarity >= ALIKE).then_some(false)
}

/// Returns the match keys of a contact with these values.
pub(crate) fn match_keys(data: &Data) -> Vec<String> {
    Traits::of(data).keys()
}

fn last_digits(phone: &str) -> Option<String> {
    let digits: Vec<char> = phone.chars().filter(char::is_ascii_digit).collect();
    let start = digits.len().checked_sub(LAST_DIGITS)?;
    digits.get(start..).map(|last| last.iter().collect())
}

/// Normalizes an e-mail address: drops the part after `+`, and dots at Gmail, which providers ignore.
fn mailbox(email: &str) -> Option<String> {
    let email = name_key(email);
    let (local, domain) = email.rsplit_once('@')?;
    let local = local.split_once('+').map_or(local, |(local, _)| local);
    let domain = if domain == "googlemail.com" { "gmail.com" } else { domain };
    if domain == "gmail.com" {
        return Some(format!("{}@{domain}", local.replace('.', "")));
    }
    Some(format!("{local}@{domain}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn traits(data: Value) -> Traits {
        Traits::of(&serde_json::from_value(data).unwrap())
    }

    #[test]
    fn the_same_person_is_recognised_and_others_are_not() {
        use MatchReason::*;
        let ana = json!({
            "$name": "Ana Maria Souza", "$phone": "+5511987654321", "$email": "ana.souza+shop@gmail.com",
            "$company": "Souza & Filhos", "$birthday": "1990-04-02",
        });
        for (other, reasons) in [
            (json!({ "$phone": "+11987654321" }), vec![SamePhoneVariant]),
            (json!({ "$email": "AnaSouza@googlemail.com" }), vec![SameEmailVariant]),
            (json!({ "$email": "anasouza@example.com" }), vec![SameEmailName]),
            (json!({ "$name": "souza, ana María" }), vec![SameName]),
            (json!({ "$name": "Anna Souza" }), vec![SimilarName]),
            (json!({ "$name": "Ana Sousa", "$company": "souza filhos" }), vec![SimilarName, SameCompany]),
            (json!({ "$name": "Bruno Lima", "$birthday": "1990-04-02" }), vec![SameBirthday]),
            (json!({ "$name": "Ana" }), vec![]),
            (
                json!({ "$name": "Bruno Lima", "$phone": "+5511900000000", "$email": "info@gmail.com" }),
                vec![],
            ),
        ] {
            let (score, found) = traits(ana.clone()).compare(&traits(other.clone()));
            assert_eq!(found, reasons, "{other}");
            assert_eq!(traits(other.clone()).compare(&traits(ana.clone())), (score, found), "{other}");
            assert!((0.0..=1.0).contains(&score));
        }
    }

    #[test]
    fn whoever_scores_shares_a_key() {
        for (one, other) in [
            (json!({ "$name": "Ana Maria Souza" }), json!({ "$name": "Souza Ana Maria" })),
            (
                json!({ "$name": "Ana Souza", "$company": "X" }),
                json!({ "$name": "Anna Souza", "$company": "x" }),
            ),
            (json!({ "$phone": "+5511987654321" }), json!({ "$phone": "+351987654321" })),
            (json!({ "$email": "a.b@gmail.com" }), json!({ "$email": "ab+x@gmail.com" })),
        ] {
            let (one, other) = (traits(one), traits(other));
            assert!(one.compare(&other).0 >= LEAST_SCORE);
            assert!(one.keys().iter().any(|key| other.keys().contains(key)), "{one:?} {other:?}");
        }
        assert_eq!(traits(json!({})).keys(), Vec::<String>::new());
    }
}
