//! Templates.

use super::{ROOTS, now, scope};
use crate::{Context, Failure, Roots, Template};
use serde_json::{Value as Json, json};

fn filled(text: &str, roots: &Roots<'_>, strict: bool) -> Result<Json, Failure> {
    let template =
        Template::parse(text, roots).unwrap_or_else(|mistake| panic!("{text}: {}", mistake.message));
    let scope = scope();
    let context = Context { strict, ..Context::new(&scope, now()) };
    template.evaluate(&context)?.into_json()
}

#[test]
fn expressions_between_braces_are_replaced() {
    for (text, expected) in [
        ("", json!("")),
        ("Hi {{ $contact.$name | default: \"there\" }}!", json!("Hi Ana Souza!")),
        ("{{ contact.missing | default:'there' }}", json!("there")),
        ("Hi {{ $contact.missing }}{{ $contact.nothing }}.", json!("Hi .")),
        ("{{ '}}' & \"{{\" }} {{ '\\'}}' }}", json!("}}{{ '}}")),
        ("\\{{ $contact.x }} {{ 1 + 1 }}", json!("{{ $contact.x }} 2")),
        ("$5 \\$ \\ { } }} $contact.$name", json!("$5 \\$ \\ { } }} $contact.$name")),
        (
            "{{ $order.items }} {{ $contact.tags }} {{ $order.paid }}",
            json!("[{\"sku\":\"A1\",\"price\":12.5},{\"sku\":\"B2\",\"price\":3}] vip, new false"),
        ),
    ] {
        assert_eq!(filled(text, &ROOTS, false), Ok(expected), "{text}");
    }
}

#[test]
fn one_reference_alone_keeps_its_type() {
    for (text, expected) in [
        ("{{ $order.id }}", json!(1042)),
        (" {{ $order.paid }}\n", json!(false)),
        ("{{ $order.items[1] }}", json!({ "sku": "B2", "price": 3 })),
        ("{{ $order.missing }}", json!(null)),
        ("{{ $order.id }}{{ $order.id }}", json!("10421042")),
        ("#{{ $order.id }}", json!("#1042")),
    ] {
        assert_eq!(filled(text, &ROOTS, false), Ok(expected), "{text}");
    }
    let missing = Err(Failure::Missing("$order.missing".to_owned()));
    assert_eq!(filled("{{ $order.missing }}", &ROOTS, true), missing);
    assert_eq!(filled("x {{ $order.missing }}", &ROOTS, true), missing);
}

#[test]
fn references_may_stand_without_braces() {
    let roots = ROOTS.bare();
    for (text, expected) in [
        ("$order.id", json!(1042)),
        (" $vars ", json!({ "shop.phone": "+34 600", "limit": 5 })),
        ("Hi $contact.$name.", json!("Hi Ana Souza.")),
        (
            "$vars.shop.phone, $5 $unknown.x $contact \\$contact.x $",
            json!("+34 600, $5 $unknown.x $contact $contact.x $"),
        ),
        ("a$order.id$order.paid", json!("a1042false")),
    ] {
        assert_eq!(filled(text, &roots, false), Ok(expected), "{text}");
    }
}

#[test]
fn mistakes_say_where_they_are() {
    for (text, hint) in [
        (
            "Hi {{ $contct.$name }}",
            "has `{{ $contct.$name }}`, which names `$contct`, which cannot be read here; did you mean `$contact`?",
        ),
        ("{{ $contact.$name", "has a `{{` without `}}`"),
        ("{{}}", "has `{{}}`, which ends too early"),
        ("{{{{ 1 }}}}", "means nothing here"),
    ] {
        let message = Template::parse(text, &ROOTS).unwrap_err().message;
        assert!(message.contains(hint), "{text}: {message}");
    }
    assert!(Template::parse(&"{{1}}".repeat(501), &ROOTS).is_err());
    assert!(Template::parse(&"x".repeat(65_537), &ROOTS).is_err());
}

#[test]
fn templates_know_what_they_read() {
    let template =
        Template::parse("{{ $contact.$name | default: vars.a.b }} {{ size($order.items) }}", &ROOTS).unwrap();
    let paths: Vec<String> = template.references().iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["$contact.$name", "$vars[\"a.b\"]", "$order.items"]);
}
