use crate::support::{fixture, fixtures, parse};
use chatnet::Update;
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn what_is_no_callback_is_kept() {
    for (raw, kind) in [
        (&b""[..], "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[[[[", "not JSON"),
        (b"null", "no entry"),
        (b"{}", "no entry"),
        (br#"{"entry":[]}"#, "no entry"),
        (br#"{"entry":[{"id":"1"}]}"#, "no changes"),
        (br#"{"entry":[{"changes":[7]}]}"#, "no field"),
    ] {
        let updates = parse(raw);
        assert!(
            matches!(&updates[..], [Update::Unknown { kind: found, .. }] if found == kind),
            "{updates:?}"
        );
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(parse(deep.as_bytes()).len(), 1);
}

#[test]
fn names_of_unknown_parts_are_short() {
    let body = json!({ "entry": [{ "changes": [{ "field": "é".repeat(5000), "value": {} }] }] });
    let updates = parse(body.to_string().as_bytes());
    assert!(matches!(&updates[..], [Update::Unknown { kind, .. }] if kind.chars().count() == 100));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[0-9]{1,30}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..5).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

/// Generates words that the parser looks for, so that random JSON reaches most of its code.
fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "entry",
        "changes",
        "field",
        "value",
        "messages",
        "statuses",
        "contacts",
        "metadata",
        "id",
        "from",
        "type",
        "text",
        "body",
        "timestamp",
        "status",
        "errors",
        "system",
        "interactive",
        "button_reply",
        "user_id",
        "wa_id",
        "profile",
        "image",
        "location",
        "latitude",
        "edit",
        "message",
        "context",
        "user_preferences",
    ])
    .prop_map(str::to_owned)
}

/// Replaces the value with this number, counted in the order of a traversal.
fn replace(value: &mut Value, at: &mut usize, new: &Value) {
    if *at == 0 {
        *value = new.clone();
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, at, new)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, at, new)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(raw in prop::collection::vec(any::<u8>(), 0..200)) {
        parse(&raw);
    }

    #[test]
    fn no_json_is_too_strange(body in any_json()) {
        parse(body.to_string().as_bytes());
        let wrapped = json!({ "entry": [{ "changes": [{ "field": "messages", "value": body }] }] });
        prop_assert!(!parse(wrapped.to_string().as_bytes()).is_empty());
    }

    #[test]
    fn a_changed_callback_is_read_or_kept(
        name in prop::sample::select(fixtures()),
        at in 0..120_usize,
        new in any_json(),
    ) {
        let mut body: Value = serde_json::from_slice(&fixture(&name)).unwrap();
        replace(&mut body, &mut { at }, &new);
        parse(body.to_string().as_bytes());
    }

    #[test]
    fn a_broken_callback_is_read_or_kept(
        name in prop::sample::select(fixtures()),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut raw = fixture(&name);
        let at = at.index(raw.len());
        raw[at] = byte;
        parse(&raw);
        prop_assert!(!parse(&raw[..at]).is_empty());
    }
}
