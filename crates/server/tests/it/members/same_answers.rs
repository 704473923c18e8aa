//! Every public operation answers a session as it answers a key: the same status and body, but for who did it.

use crate::operations::document::Op;
use crate::operations::examples::{Answered, send_examples};
use crate::operations::sweep::Sweep;
use model::{Env, MemberRole, WorkspaceId};
use serde_json::{Map, Value};
use testkit::{Key, Kind, Member};
use tokio::sync::OnceCell;

/// Operations whose example is about what somebody else wrote, which only its author may change.
const OF_AUTHORS: [&str; 4] =
    ["deleteItemComment", "deleteTaskComment", "updateItemComment", "updateTaskComment"];

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

/// Whether a text is an id, a token or a hash, which no two installations have in common.
fn is_random(text: &str) -> bool {
    let (has_digit, has_letter) =
        (text.contains(|c: char| c.is_ascii_digit()), text.contains(|c: char| c.is_ascii_alphabetic()));
    text.len() >= 20 && has_digit && has_letter && !text.contains(' ') && !text.starts_with("20")
}

/// A body without what differs between two installations, and between a member and a key.
fn compared(value: &Value) -> Value {
    match value {
        Value::String(text) if is_random(text) => "random".into(),
        Value::Object(fields) if is_actor(fields) => "actor".into(),
        Value::Object(fields) => {
            let own = fields.iter().filter(|(name, _)| !name.ends_with("_ms"));
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
    let mut different = Vec::new();
    for (key, session) in by_key.iter().zip(&by_session) {
        assert_eq!(key.path, session.path);
        if OF_AUTHORS.contains(&key.op.id.as_str()) {
            session.answer.expect_error(403, "not_author");
            continue;
        }
        let (one, other) = (compared(&key.answer.body), compared(&session.answer.body));
        if key.answer.status != session.answer.status || one != other {
            different.push(format!("{} {}\n  by key {one}\n  by session {other}", key.op.id, key.path));
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}
