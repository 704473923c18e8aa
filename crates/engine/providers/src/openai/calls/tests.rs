use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

const NAMES: [&str; 3] = ["book", "look_up", "book_room"];

fn heard(pieces: &[Value]) -> Vec<(String, String)> {
    let mut calls = Calls::of(NAMES.iter().map(|name| (*name).to_owned()));
    for piece in pieces {
        let message = json!({ "tool_calls": [piece] }).to_string();
        for piece in super::pieces(Node::root(&message).unwrap()) {
            calls.add(piece);
        }
    }
    calls.end().into_iter().map(|call| (call.name, call.arguments)).collect()
}

fn piece(index: Option<i64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut piece = json!({ "type": "function", "function": { "arguments": arguments } });
    if let Some(index) = index {
        piece["index"] = index.into();
    }
    if let Some(id) = id {
        piece["id"] = id.into();
    }
    if let Some(name) = name {
        piece["function"]["name"] = name.into();
    }
    piece
}

fn call(name: &str, arguments: &str) -> (String, String) {
    (name.to_owned(), arguments.to_owned())
}

#[test]
fn pieces_of_one_call_are_one_call() {
    let begin = piece(Some(0), Some("a"), Some("book"), "");
    for rest in [
        [piece(Some(0), Some("b"), None, "{\"re"), piece(Some(0), Some("b"), None, "f\":7}")],
        [piece(Some(0), Some("b"), None, "{\"re"), piece(Some(0), Some("c"), None, "f\":7}")],
        [piece(Some(1), None, None, "{\"re"), piece(Some(2), None, None, "f\":7}")],
        [piece(None, None, None, "{\"re"), piece(None, None, None, "f\":7}")],
        [piece(Some(0), Some(""), Some(""), "{\"re"), piece(Some(0), Some(""), Some(""), "f\":7}")],
        [piece(Some(0), None, Some("book"), "{\"re"), piece(Some(0), None, Some("book"), "f\":7}")],
        [piece(Some(0), Some("a"), Some("book"), "{\"re"), piece(Some(0), Some("a"), Some("book"), "f\":7}")],
        [piece(Some(0), Some("b"), Some("book"), "{\"re"), piece(Some(0), Some("c"), Some("book"), "f\":7}")],
        [piece(Some(1), Some("a"), Some("book"), "{\"re"), piece(Some(2), Some("a"), Some("book"), "f\":7}")],
        [piece(Some(0), None, None, "{\"ref\":7}"), piece(Some(0), None, None, "{\"ref\":7}")],
        [piece(Some(0), None, None, "{\"ref\":7}"), piece(Some(0), Some("a"), Some("book"), "")],
        [piece(Some(0), None, None, "{}"), piece(Some(0), None, None, "{\"ref\":7}")],
    ] {
        let pieces = [std::slice::from_ref(&begin), &rest[..]].concat();
        assert_eq!(heard(&pieces), [call("book", "{\"ref\":7}")], "{pieces:?}");
    }
}

#[test]
fn calls_with_one_index_are_several_calls() {
    let expected = [call("book", "{\"ref\":1}"), call("book", "{\"ref\":2}")];
    for id in [None, Some(""), Some("same")] {
        for index in [None, Some(0)] {
            let pieces = [
                piece(index, id, Some("book"), "{\"ref\":1}"),
                piece(index, id, Some("book"), "{\"ref\":2}"),
            ];
            assert_eq!(heard(&pieces), expected, "{pieces:?}");
        }
    }
    // Announced together, and sent in turns.
    let turns = [
        piece(Some(0), Some("a"), Some("book"), ""),
        piece(Some(0), Some("b"), Some("book"), ""),
        piece(Some(0), Some("b"), None, "{\"ref\""),
        piece(Some(0), Some("a"), None, "{\"ref\":1}"),
        piece(Some(0), Some("b"), None, ":2}"),
    ];
    assert_eq!(heard(&turns), expected);
    let other = [
        piece(Some(0), None, Some("book"), "{\"ref\":1}"),
        piece(Some(0), None, Some("look_up"), ""),
        piece(Some(0), None, None, "{\"q\":2}"),
    ];
    assert_eq!(heard(&other), [call("book", "{\"ref\":1}"), call("look_up", "{\"q\":2}")]);
}

#[test]
fn odd_pieces_are_read() {
    let object = json!({ "index": 0, "function": { "name": "book", "arguments": { "ref": 7 } } });
    assert_eq!(heard(&[object]), [call("book", "{\"ref\":7}")]);
    let names = [
        piece(Some(0), Some("a"), Some("look"), ""),
        piece(Some(0), None, Some("_up"), ""),
        piece(Some(0), None, None, "{\"q\":1}"),
    ];
    assert_eq!(heard(&names), [call("look_up", "{\"q\":1}")]);
    let late = [
        json!({ "index": 0, "id": "a" }),
        piece(Some(0), None, Some("book"), ""),
        piece(Some(0), None, None, "{}"),
    ];
    assert_eq!(heard(&late), [call("book", "{}")]);
    let old = r#"{"function_call":{"name":"book","arguments":"{}"}}"#;
    assert_eq!(whole(Node::root(old).unwrap())[0].name, "book");
    for nothing in
        ["{}", r#"{"tool_calls":null}"#, r#"{"tool_calls":"x"}"#, r#"{"tool_calls":[null,5]}"#, "7"]
    {
        assert!(whole(Node::root(nothing).unwrap()).is_empty(), "{nothing}");
    }
}

#[test]
fn arguments_of_nothing_are_an_empty_object_once_the_call_has_ended() {
    for (written, settled) in [
        ("", "{}"),
        (" null ", "{}"),
        ("{\"a\":1}", "{\"a\":1}"),
        ("\"{\\\"a\\\":1}\"", "{\"a\":1}"),
        ("\"text\"", "\"text\""),
        ("{\"a\":", "{\"a\":"),
    ] {
        let mut call = ToolCall { id: String::new(), name: String::new(), arguments: written.to_owned() };
        settle(&mut call);
        assert_eq!(call.arguments, settled);
    }
}

/// How a server sends calls in pieces.
#[derive(Debug, Clone, Copy)]
enum Habit {
    OpenAi,
    /// Another id with each piece.
    NewIds,
    /// The index counts pieces.
    CountsOn,
    NoIndex,
    /// All calls have the index 0; ids tell them apart.
    OneIndex,
    /// All calls have the index 0 and no id.
    NoIds,
    /// The name comes with each piece.
    NamesAgain,
}

fn sent(habit: Habit, calls: &[(String, String, usize)]) -> Vec<Value> {
    let mut pieces = Vec::new();
    for (number, (name, arguments, size)) in calls.iter().enumerate() {
        let number = i64::try_from(number).unwrap();
        let id = format!("call_{number}");
        let letters: Vec<char> = arguments.chars().collect();
        let parts = letters.chunks(*size).map(|part| part.iter().collect::<String>());
        for (place, part) in std::iter::once(String::new()).chain(parts).enumerate() {
            let is_first = place == 0;
            let count = i64::try_from(pieces.len()).unwrap();
            let first = |text: &str| is_first.then(|| text.to_owned());
            let (index, id, name) = match habit {
                Habit::OpenAi => (Some(number), first(&id), first(name)),
                Habit::NewIds => (Some(number), Some(format!("p{count}")), first(name)),
                Habit::CountsOn => (Some(count), first(&id), first(name)),
                Habit::NoIndex => (None, first(&id), first(name)),
                Habit::OneIndex => (Some(0), Some(id.clone()), first(name)),
                Habit::NoIds => (Some(0), None, first(name)),
                Habit::NamesAgain => (Some(number), Some(id.clone()), Some(name.clone())),
            };
            pieces.push(piece(index, id.as_deref(), name.as_deref(), &part));
        }
    }
    pieces
}

proptest! {
    #[test]
    fn every_habit_brings_the_same_calls(
        habit in prop::sample::select(vec![
            Habit::OpenAi, Habit::NewIds, Habit::CountsOn, Habit::NoIndex, Habit::OneIndex, Habit::NoIds, Habit::NamesAgain,
        ]),
        calls in prop::collection::vec((prop::sample::select(NAMES.to_vec()), "[a-z{}\\[\"é ]{0,6}", 0u64..1_000_000, 1usize..9), 0..4),
    ) {
        let calls: Vec<(String, String, usize)> = calls.into_iter().enumerate().map(|(number, (name, text, count, size))| {
            (name.to_owned(), json!({ "t": text, "n": { "count": count }, "at": number }).to_string(), size)
        }).collect();
        let expected: Vec<_> = calls.iter().map(|(name, arguments, _)| call(name, arguments)).collect();
        prop_assert_eq!(heard(&sent(habit, &calls)), expected);
    }
}
