//! Spellings of telephone numbers, and what is refused.

use super::*;

#[test]
fn spellings_of_a_number_are_one_number() {
    for (one, other) in [
        ("+551187654321", "+5511987654321"),
        ("+5215512345678", "+525512345678"),
        ("+5491123456789", "+541123456789"),
        ("+22997445566", "+2290197445566"),
        ("+22541445566", "+2250141445566"),
        ("+22507445566", "+2250707445566"),
        ("+22558445566", "+2250758445566"),
        ("+22505445566", "+2250505445566"),
        ("+22564445566", "+2250564445566"),
        ("+22501445566", "+2250101445566"),
        ("+22520845566", "+2252120845566"),
        ("+22522045566", "+2252522045566"),
        ("+22520245566", "+2252720245566"),
        ("+22531645566", "+2252731645566"),
        ("+23775123456", "+237675123456"),
        ("+23794123456", "+237694123456"),
        ("+59399123456", "+593999123456"),
        ("+5712345678", "+576012345678"),
        ("+2307123456", "+23057123456"),
    ] {
        assert_eq!(identity(one), identity(other), "{one}");
        assert_eq!(of_network(&one[1..]).as_deref().map(identity), Some(identity(other)), "{one}");
        assert!(international(other, None).is_ok(), "{other}");
        assert_eq!(
            international(one, None).map(|number| identity(&number)).ok(),
            Some(identity(other)),
            "{one}"
        );
    }
    // A fixed line in São Paulo, a service of Ivory Coast, and numbers that only begin like changed ones.
    for same in [
        "+551132345678",
        "+22580012345",
        "+22985751234",
        "+52155123456",
        "+4915112345678",
        "+14155550123",
        "+2290197445566",
    ] {
        assert_eq!(identity(same), same);
    }
}

#[test]
fn a_changed_number_is_no_other_number_of_the_plan() {
    for country in DATABASE.iter().filter(|country| country.id() != "001") {
        for kind in TYPES {
            let Some(example) = country.descriptors().get(kind).and_then(|numbers| numbers.example()) else {
                continue;
            };
            let number = format!("+{}{example}", country.country_code());
            let is_old = ["55", "52", "54"].contains(&country.country_code().to_string().as_str());
            assert!(is_old || modern(&number).is_none(), "{number}");
        }
    }
    // Those that were changed before contacts were indexed by the new form.
    for change in CHANGES.iter().filter(|change| !["55", "52", "54"].contains(&change.code)) {
        for (old, new) in change.beginnings.iter().filter(|(old, new)| old != new) {
            for filling in ["0000000000", "1234567890", "4455667788", "9876543210"] {
                let begin = old.replace('?', "4");
                let number = format!("+{}{begin}{}", change.code, &filling[..change.length - old.len()]);
                let known = phonenumber::parse(None, &number).ok().and_then(|parsed| assigned(&parsed));
                assert!(known.is_none_or(|known| known.written != number), "{number} {new}");
            }
        }
    }
}

#[test]
fn numbers_are_written_in_their_international_form() {
    let spain = "ES".parse().ok();
    for (text, default, written) in [
        ("+49 (151) 123-45678", None, Ok("+4915112345678")),
        ("612 345 678", spain, Ok("+34612345678")),
        ("+55 11 8765-4321", None, Ok("+5511987654321")),
        ("+52 1 55 1234 5678", None, Ok("+525512345678")),
        ("+229 97 44 55 66", None, Ok("+2290197445566")),
        ("+39 02 1234 5678", None, Ok("+390212345678")),
        ("tel:+34-612-345-678", None, Ok("+34612345678")),
        ("tel:612345678;phone-context=+34", None, Ok("+34612345678")),
        ("1-800-FLOWERS", "US".parse().ok(), Ok("+18003569377")),
        ("\u{202a}+34 612\u{a0}345 678\u{202c}", None, Ok("+34612345678")),
        ("+34\u{fe0f}612\u{200b}345678\u{feff}", None, Ok("+34612345678")),
        ("\u{ff0b}\u{ff13}\u{ff14}612345678", None, Ok("+34612345678")),
        ("+\u{663}\u{664}612345678", None, Ok("+34612345678")),
        // The plan lacks it, but has numbers of this length.
        ("+1 555 012 3456", None, Ok("+15550123456")),
        ("+34 012 345 678", None, Ok("+34012345678")),
        ("0034 690 711 316", spain, Ok("+34690711316")),
        ("0034690711316", spain, Ok("+34690711316")),
        ("34690711316", spain, Ok("+34690711316")),
        ("690/711/316", spain, Ok("+34690711316")),
        ("690.711.316", spain, Ok("+34690711316")),
        ("+34 (0) 690 711 316", None, Ok("+34690711316")),
        ("+49 (0)151 12345678", None, Ok("+4915112345678")),
        ("+44 (0) 20 7946 0958", None, Ok("+442079460958")),
        ("+39 (0) 6 1234 5678", None, Ok("+390612345678")),
        ("0151/12345678", "DE".parse().ok(), Ok("+4915112345678")),
        ("+34 690 711 316 / 690 711 317", None, Err(())),
        ("690 711 316 / 690 711 317", spain, Err(())),
        ("0034690711316", None, Err(())),
        ("012 345 678", spain, Err(())),
        ("+34 612 345 67", None, Err(())),
        ("+34 612 345 6789", None, Err(())),
        ("612 345 678", None, Err(())),
        ("+999 612 345 678", None, Err(())),
        ("+1 555", None, Err(())),
        ("call me", spain, Err(())),
        ("", None, Err(())),
        ("\u{200b}", spain, Err(())),
    ] {
        assert_eq!(international(text, default).map_err(|_| ()), written.map(str::to_owned), "{text}");
    }
}

#[test]
fn nothing_behind_a_number_is_cut_off() {
    let number = "+1 212 555 2368";
    for more in [
        " ext. 12",
        " ext 4711",
        " x12",
        "x12",
        ",,12",
        ";12",
        "#12",
        " #12",
        ";ext=12",
        " extensión 12",
        " ext. 552368",
        " ramal 12",
        " poste 12",
        " int. 12",
        " anexo 12",
        " / +1 212 555 2369",
        " 12",
        ", 12",
        " o 13",
        " p 12",
        "w12",
    ] {
        assert!(read(&format!("{number}{more}"), None).is_err(), "{more}");
        assert!(read(&format!("(212) 555-2368{more}"), "US".parse().ok()).is_err(), "{more}");
    }
    for text in ["tel:+1-212-555-2368;ext=9", "tel:+12125552368;isub=9", "tel:+12125552368;9"] {
        assert!(read(text, None).is_err(), "{text}");
    }
    for text in ["+1 212 555 2368 ext. 12", "tel:+1-212-555-2368;ext=9"] {
        assert_eq!(read(text, None).map(drop), Err(Mistake::MoreThanNumber), "{text}");
    }
    for text in [
        "+1 212 555 2368.",
        "+1 (212) 555-2368 ",
        "(+1) 212.555.2368",
        "tel:+1-212-555-2368;",
        "Tel. +1 212 555 2368",
    ] {
        assert_eq!(international(text, None).ok().as_deref(), Some("+12125552368"), "{text}");
    }
}

#[test]
fn a_network_knows_who_writes() {
    for (text, number) in [
        ("22997445566", Some("+2290197445566")),
        ("34612345678", Some("+34612345678")),
        ("551187654321", Some("+5511987654321")),
        ("+15550123456", Some("+15550123456")),
        ("99912345678", Some("+99912345678")),
        ("346123456", Some("+346123456")),
        ("346123456789012", Some("+346123456789012")),
        ("3461234567890123", None),
        ("346123", None),
        ("034612345678", None),
        ("US.13491208655302741918", None),
        ("", None),
    ] {
        assert_eq!(of_network(text).as_deref(), number, "{text}");
    }
}

#[test]
fn numbers_have_their_country() {
    for country in DATABASE.iter().filter(|country| country.id() != "001") {
        for kind in [Type::Mobile, Type::FixedLine] {
            let Some(example) = country.descriptors().get(kind).and_then(|numbers| numbers.example()) else {
                continue;
            };
            let number = format!("+{}{example}", country.country_code());
            let read = read(&number, None).unwrap_or_else(|mistake| panic!("{number} {mistake:?}"));
            assert!(read.is_in_plan, "{number}");
            // Some countries that share a code have each other's numbers, according to the plan.
            let found = country_of(&number).unwrap_or_else(|| panic!("{number} of {}", country.id()));
            let code = DATABASE.by_id(found.as_str()).unwrap().country_code();
            assert_eq!(code, country.country_code(), "{number}");
        }
    }
    for (number, country) in [
        ("+34612345678", Some("ES")),
        ("+14165550123", Some("CA")),
        ("+390212345678", Some("IT")),
        ("+390669812345", Some("VA")),
        ("+393331234567", Some("IT")),
        ("+77011234567", Some("KZ")),
        ("+79161234567", Some("RU")),
        ("+2290197445566", Some("BJ")),
        ("+22912345", Some("BJ")),
        ("+80012345678", None),
        ("+15550123456", None),
    ] {
        assert_eq!(country_of(number).as_deref(), country, "{number}");
    }
}

#[test]
fn numbers_are_looked_for_by_what_is_dialled() {
    for (text, digits) in [
        ("690 711 316", Some("690711316")),
        ("690.711/316", Some("690711316")),
        ("0711316", Some("0711316")),
        ("0034 690 711 316", Some("34690711316")),
        ("+34 (0) 690-711-316", Some("34690711316")),
        ("(+34) 690 711 316", Some("34690711316")),
        ("0151 12345678", Some("15112345678")),
        ("711316", None),
        ("Ana 690711316", None),
        ("1234567890123456", None),
        ("", None),
    ] {
        assert_eq!(dialled(text).as_deref(), digits, "{text}");
    }
    let found: Vec<&str> = ends("+34690711316").collect();
    assert_eq!(found, ["4690711316", "690711316", "90711316", "0711316"]);
    assert_eq!(ends("Ana").count(), 0);
}
