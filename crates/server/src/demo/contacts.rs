//! The demo's contacts: 200 people in several countries, always the same. Some were written down twice.

use contacts::CONTACTS;
use fields::value::Mode;
use model::{ContactId, Result, WorkspaceId};
use records::Author;
use records::rows::{Draft, Missing, Writer, merge};
use records::sets;
use records::shape::Shapes;
use serde_json::{Value, json};
use store::Tx;

/// How many there are.
const CONTACTS_MADE: usize = 200;

/// A country: its first and last names, its language, and its telephone numbers, where `#` stands for four digits.
struct Country {
    first: [&'static str; 8],
    last: [&'static str; 8],
    language: &'static str,
    time_zone: &'static str,
    phone: &'static str,
}

const COUNTRIES: [Country; 5] = [
    Country {
        first: ["Ana", "Bruno", "Camila", "Diego", "Fernanda", "Gustavo", "Larissa", "Rafael"],
        last: ["Souza", "Oliveira", "Costa", "Pereira", "Almeida", "Ribeiro", "Carvalho", "Gomes"],
        language: "pt-BR",
        time_zone: "America/Sao_Paulo",
        phone: "+551198761#",
    },
    Country {
        first: ["Lucía", "Hugo", "Martina", "Pablo", "Sofía", "Javier", "Carmen", "Álvaro"],
        last: ["García", "Fernández", "López", "Martín", "Sánchez", "Ruiz", "Díaz", "Moreno"],
        language: "es-ES",
        time_zone: "Europe/Madrid",
        phone: "+3461234#",
    },
    Country {
        first: ["Anna", "Felix", "Greta", "Jonas", "Klara", "Lukas", "Mia", "Paul"],
        last: ["Müller", "Schmidt", "Weber", "Fischer", "Becker", "Wolf", "Krüger", "Neumann"],
        language: "de-DE",
        time_zone: "Europe/Berlin",
        phone: "+491511234#",
    },
    Country {
        first: ["Valentina", "Mateo", "Renata", "Emilio", "Ximena", "Andrés", "Regina", "Iker"],
        last: ["Hernández", "Martínez", "Ramírez", "Flores", "Torres", "Vargas", "Castillo", "Ortega"],
        language: "es-MX",
        time_zone: "America/Mexico_City",
        phone: "+52551234#",
    },
    Country {
        first: ["Emma", "Liam", "Olivia", "Noah", "Grace", "Ethan", "Zoe", "Owen"],
        last: ["Walker", "Bennett", "Hughes", "Foster", "Reed", "Sullivan", "Parker", "Hayes"],
        language: "en-US",
        time_zone: "America/New_York",
        phone: "+1212555#",
    },
];

const STAGES: [&str; 7] = ["new", "contacted", "qualified", "proposal", "negotiation", "won", "lost"];
const SOURCES: [&str; 5] = ["website", "chat", "referral", "advertising", "social_media"];
const COMPANIES: [&str; 6] =
    ["Acme Toys", "Nordlicht Handel", "Casa Verde", "Blue Harbor", "Taller Sol", "Papelaria Central"];
const TAGS: [&str; 5] = ["vip", "newsletter", "wholesale", "birthday-club", "follow-up"];

/// Makes the contacts, and gives their ids.
pub(super) fn make(tx: &mut Tx, workspace: WorkspaceId) -> Result<Vec<ContactId>> {
    let author = Author { emits: false, ..Author::system(workspace, "demo") };
    let shapes = Shapes::new([&CONTACTS]);
    let shape = sets::for_write(tx, &shapes, workspace, &CONTACTS)?;
    let writer = Writer { shapes: &shapes, shape: &shape, author: &author };
    let mut ids = Vec::with_capacity(CONTACTS_MADE);
    for number in 0..CONTACTS_MADE {
        let Value::Object(values) = contact(number) else { continue };
        let data = merge(&shape, None, &values, Missing::Default, Mode::Strict, "")?;
        ids.push(writer.insert(tx, Draft { data, ..Draft::default() })?.id.into());
    }
    Ok(ids)
}

/// Name and telephone number of those whom the demo's chat network knows: one of each country.
pub(super) fn customers() -> impl Iterator<Item = (String, String)> {
    (0..COUNTRIES.len()).filter_map(|number| {
        let contact = contact(number);
        let text = |key: &str| contact.get(key).and_then(Value::as_str).map(str::to_owned);
        Some((text("$name")?, text("$phone")?))
    })
}

/// One of a list, whatever the number.
fn pick<'a>(of: &[&'a str], number: usize) -> &'a str {
    of.get(number % of.len().max(1)).copied().unwrap_or_default()
}

/// The contact of a number. Every twentieth is the one before it, as somebody else wrote it down.
fn contact(number: usize) -> Value {
    if number % 20 == 19 {
        let mut again = contact(number - 1);
        if let Some(values) = again.as_object_mut() {
            let email = values.get("$email").and_then(Value::as_str).map(|email| format!("private.{email}"));
            values.insert("$email".to_owned(), email.into());
            values.remove("$phone");
            values.insert("$source".to_owned(), "import".into());
        }
        return again;
    }
    let Some(country) = COUNTRIES.get(number % COUNTRIES.len()) else { return Value::Null };
    // Any fixed mixing will do: it only has to look uneven.
    let mixed = (number * 7919 + 104_729) % 1000;
    let (first, last) = (pick(&country.first, mixed), pick(&country.last, mixed / 8 + number));
    let plain = |name: &str| fields::text::ascii(name).to_lowercase();
    let tags: Vec<&str> = (0_usize..)
        .zip(TAGS)
        .filter(|(place, _)| mixed.is_multiple_of(place + 3))
        .map(|(_, tag)| tag)
        .collect();
    json!({
        "$name": format!("{first} {last}"),
        "$phone": country.phone.replace('#', &format!("{:04}", 1000 + number)),
        "$email": format!("{}.{}{number}@example.com", plain(first), plain(last)),
        "$language": country.language,
        "$timezone": country.time_zone,
        "$source": pick(&SOURCES, mixed / 3),
        "$stage": pick(&STAGES, mixed / 7),
        "$company": if mixed.is_multiple_of(2) { Value::Null } else { pick(&COMPANIES, mixed / 5).into() },
        "$birthday": format!("{}-{:02}-{:02}", 1955 + mixed % 50, 1 + mixed % 12, 1 + mixed % 28),
        "$tags": tags,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn telephone_numbers_exist_and_differ() {
        let all: Vec<Value> = (0..CONTACTS_MADE).map(contact).collect();
        let phones: Vec<&str> = all.iter().filter_map(|contact| contact["$phone"].as_str()).collect();
        for phone in &phones {
            assert_eq!(fields::phone::international(phone, None).as_deref().ok(), Some(*phone));
        }
        assert_eq!(phones.iter().collect::<BTreeSet<_>>().len(), phones.len());
        assert_eq!(phones.len(), CONTACTS_MADE - CONTACTS_MADE / 20);
    }
}
