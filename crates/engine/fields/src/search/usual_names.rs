//! Usual names of columns in lists of people, in several languages.

use crate::search::terms::words;

/// Names without case, accents and spaces, by the key of the contact field. Telephone numbers are in two groups: of two columns
/// the one with mobile numbers is better, because these are the numbers of chat networks.
#[rustfmt::skip]
const NAMES: [(&str, &[&str]); 8] = [
    ("$phone", &[
        "mobile", "mobilephone", "mobilenumber", "mobileno", "cell", "cellphone", "cellnumber", "whatsapp", "movil",
        "telefonomovil", "numerodemovil", "celular", "telemovel", "handy", "handynummer", "mobil", "mobilnummer",
        "mobiltelefon", "portable", "telephoneportable", "cellulare", "mobiel",
    ]),
    ("$phone", &[
        "phone", "phonenumber", "phoneno", "telephone", "telephonenumber", "tel", "telefono", "numerodetelefono",
        "telefone", "telefon", "telefonnummer", "rufnummer", "numerodetelephone", "telefoon", "telefoonnummer",
    ]),
    ("$email", &[
        "email", "emailaddress", "mail", "mailaddress", "correo", "correoelectronico", "direcciondecorreo",
        "emailadresse", "mailadresse", "courriel", "adresseemail", "adressemail", "adresseelectronique",
        "postaelettronica", "indirizzoemail", "enderecodeemail", "emailadres",
    ]),
    ("$name", &[
        "fullname", "contactname", "customername", "clientname", "nombrecompleto", "nomecompleto", "nombreyapellidos",
        "vollstandigername", "kundenname", "nomcomplet", "nometetprenom", "nomecognome", "naam",
    ]),
    ("$name", GIVEN_NAMES),
    ("$company", &[
        "companyname", "organization", "organisation", "empresa", "firma", "unternehmen", "azienda", "societe",
        "entreprise", "bedrijf",
    ]),
    ("$birthday", &[
        "birthdate", "dateofbirth", "dob", "cumpleanos", "fechadenacimiento", "fechanacimiento", "geburtstag",
        "geburtsdatum", "datanascimento", "datadenascimento", "datedenaissance", "datadinascita", "geboortedatum",
    ]),
    ("$tags", &["etiquetas", "etiquettes", "schlagworter", "etichette"]),
];

/// Usual names of columns with given names.
const GIVEN_NAMES: &[&str] = &[
    "firstname",
    "givenname",
    "forename",
    "nombre",
    "nombres",
    "nome",
    "vorname",
    "prenom",
    "voornaam",
    "primeironome",
];

/// Usual names of columns with surnames.
const SURNAMES: &[&str] = &[
    "lastname",
    "surname",
    "familyname",
    "apellido",
    "apellidos",
    "sobrenome",
    "apelido",
    "nachname",
    "familienname",
    "nomdefamille",
    "cognome",
    "achternaam",
];

fn bare(column: &str) -> String {
    words(column).concat()
}

/// The key of the contact field that columns with this name usually have.
pub fn contact_field(column: &str) -> Option<&'static str> {
    rank(column).map(|(_, key)| key)
}

fn rank(column: &str) -> Option<(usize, &'static str)> {
    let name = bare(column);
    let found = NAMES.iter().enumerate().find(|(_, (_, names))| names.contains(&name.as_str()));
    found.map(|(rank, (key, _))| (rank, *key))
}

/// The place of the column that has the values of a contact field, of several columns with usual names.
pub fn best_column<'a>(columns: impl Iterator<Item = &'a str>, key: &str) -> Option<usize> {
    let ranked = columns.enumerate().filter_map(|(place, column)| {
        let (rank, own) = rank(column)?;
        (own == key).then_some((rank, place))
    });
    ranked.min().map(|(_, place)| place)
}

/// Whether a column with this name usually has given names.
pub fn is_given_name(column: &str) -> bool {
    GIVEN_NAMES.contains(&bare(column).as_str())
}

/// Whether a column with this name usually has surnames.
pub fn is_surname(column: &str) -> bool {
    SURNAMES.contains(&bare(column).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_known_by_their_usual_names() {
        for (column, key) in [
            ("Móvil", Some("$phone")),
            ("TELÉFONO", Some("$phone")),
            ("Telefon", Some("$phone")),
            ("Mobile phone", Some("$phone")),
            ("Correo electrónico", Some("$email")),
            ("E-Mail", Some("$email")),
            ("E-Mail-Adresse", Some("$email")),
            ("Nombre", Some("$name")),
            ("Vorname", Some("$name")),
            ("Fecha de nacimiento", Some("$birthday")),
            ("Apellidos", None),
            ("Price", None),
            ("", None),
        ] {
            assert_eq!(contact_field(column), key, "{column}");
        }
        let columns = ["Nombre", "Apellidos", "Teléfono", "Móvil", "Celular"];
        let best = |key| best_column(columns.into_iter(), key);
        assert_eq!((best("$name"), best("$phone"), best("$email")), (Some(0), Some(3), None));
        assert!(is_given_name("Nombre") && is_surname("Apellidos") && !is_surname("Nombre"));
    }
}
