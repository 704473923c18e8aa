//! Every public operation answers a session as it answers a key: the same status and body, but for who did it.

use crate::operations::document::Op;
use crate::operations::examples::{Answered, send_examples};
use crate::operations::sweep::Sweep;
use model::{Env, MemberRole, WorkspaceId};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use testkit::{Key, Kind, Member};
use tokio::sync::OnceCell;

/// Operations whose example is about what somebody else wrote, which only its author may change.
const OF_AUTHORS: [&str; 3] = ["deleteItemComment", "deleteTaskComment", "updateTaskComment"];

/// The answers to all examples in a new shop, by session or by key.
async fn answers(kind: Kind, by_session: bool) -> Vec<Answered> {
    let sweep = Sweep::begin(kind).await;
    let workspace = WorkspaceId(sweep.workspace.parse().unwrap());
    // The member comes after the objects of the shop, whose ids the examples know.
    let owner: OnceCell<Member> = OnceCell::new();
    let key = async |op: &Op| -> Key {
        let owner = owner.get_or_init(|| sweep.app.member(workspace, MemberRole::Owner)).await;
        if by_session && !op.partner_only {
            // Ten minutes pass between the requests of this walk.
            sweep.app.fresh_token(owner, Env::Live).await
        } else {
            sweep.key(op, true).clone()
        }
    };
    send_examples(&sweep, key).await
}

/// Whether a text is an id, a token, a signature or a hash, which no two installations have in common.
fn is_random(text: &str) -> bool {
    text.starts_with("v1,") || (text.len() >= 20 && !text.contains(' ') && !text.starts_with("20"))
}

/// Whether two bodies have the same fields, all the way down. Two installations order rows of the same moment differently, and
/// a flow that another key publishes again has another version.
fn has_the_same_fields(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| {
                    // The caller's own data.
                    let is_free = name == "metadata";
                    other.get(name).is_some_and(|other| is_free || has_the_same_fields(value, other))
                })
        }
        (Value::Array(one), Value::Array(other)) => {
            one.iter().zip(other).all(|(one, other)| has_the_same_fields(one, other))
        }
        (Value::Null, _) | (_, Value::Null) => true,
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

/// A body without what differs between two installations, and between a member and a key.
fn compared(value: &Value) -> Value {
    match value {
        Value::String(text) if is_random(text) => "random".into(),
        Value::Object(fields) if is_actor(fields) => "actor".into(),
        Value::Object(fields) => {
            // Durations, and how somebody came in: `api` or `user`.
            let own =
                fields.iter().filter(|(name, _)| !name.ends_with("_ms") && !name.ends_with("created_via"));
            Value::Object(own.map(|(name, value)| (name.clone(), compared(value))).collect())
        }
        Value::Array(rows) => Value::Array(rows.iter().map(compared).collect()),
        other => other.clone(),
    }
}

fn is_actor(fields: &Map<String, Value>) -> bool {
    let kind = fields.get("type").and_then(Value::as_str);
    fields.contains_key("id") && kind.is_some_and(|kind| ["api_key", "user", "api"].contains(&kind))
}

#[testkit::both]
async fn every_operation_answers_a_session_as_it_answers_a_key(kind: Kind) {
    let (by_key, by_session) = (answers(kind, false).await, answers(kind, true).await);
    assert_eq!(by_key.len(), by_session.len());
    let (mut different, mut of_authors, mut inexact) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (key, session) in by_key.iter().zip(&by_session) {
        assert_eq!(key.op.id, session.op.id);
        if session.answer.body["error"]["code"] == "not_author" {
            key.answer.expect(200);
            of_authors.insert(key.op.id.as_str());
            continue;
        }
        let (one, other) = (compared(&key.answer.body), compared(&session.answer.body));
        // The entries of the comments that only their author changes are missing there.
        let is_same = has_the_same_fields(&one, &other) || key.op.id == "listTaskActivity";
        if key.answer.status != session.answer.status || !is_same {
            different.push(format!("{} {}\n  by key {one}\n  by session {other}", key.op.id, key.path));
        } else if one != other {
            inexact.insert(key.op.id.as_str());
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    assert_eq!(of_authors, OF_AUTHORS.into());
    assert!(inexact.len() < 20, "values differ: {inexact:?}");
}
