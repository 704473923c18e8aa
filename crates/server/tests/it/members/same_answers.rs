//! Every public operation answers a session as it answers a key: the same status and body, but for who did it.

use crate::operations::document::Op;
use crate::operations::examples::{Answered, send_examples};
use crate::operations::over_mcp::masked;
use crate::operations::sweep::Sweep;
use model::{Env, MemberRole, WorkspaceId};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use testkit::{Key, Kind, Member};
use tokio::sync::OnceCell;

/// Operations whose example is about what somebody else wrote, which only its author may change.
const OF_AUTHORS: [&str; 3] = ["deleteItemComment", "deleteTaskComment", "updateTaskComment"];

/// Operations whose answers name the number of versions of a flow that the walk publishes again: a new version for another actor.
const OF_PUBLISHERS: [&str; 6] = [
    "listFlowRuns",
    "listFlowVersions",
    "publishFlow",
    "restoreFlowVersion",
    "startFlowRun",
    "unpublishFlow",
];

/// Operations whose answers count the comments that only their author deletes.
const OF_COMMENTS: [&str; 2] = ["listTaskActivity", "unassignTask"];

/// Operations whose answers state limits: a member has a rate of its own.
const OF_LIMITS: [&str; 1] = ["getMe"];

/// The operations whose answers may differ.
fn with_a_reason() -> BTreeSet<&'static str> {
    OF_PUBLISHERS.iter().chain(&OF_COMMENTS).chain(&OF_LIMITS).copied().collect()
}

/// The answers to all examples in a new shop, by session or by key.
async fn answers(kind: Kind, by_session: bool) -> Vec<Answered> {
    let sweep = Sweep::of_api(kind).await;
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

/// A body without what differs between two installations, and between a member and a key.
fn compared(value: &Value) -> Value {
    without_actors(&masked(value))
}

fn without_actors(value: &Value) -> Value {
    match value {
        Value::Object(fields) if is_actor(fields) => "actor".into(),
        Value::Object(fields) => {
            // How somebody came in: `api` or `user`.
            let own = fields.iter().filter(|(name, _)| !name.ends_with("created_via"));
            Value::Object(own.map(|(name, value)| (name.clone(), without_actors(value))).collect())
        }
        Value::Array(rows) => Value::Array(rows.iter().map(without_actors).collect()),
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
    let (mut different, mut of_authors, mut explained) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (key, session) in by_key.iter().zip(&by_session) {
        assert_eq!(key.op.id, session.op.id);
        if session.answer.body["error"]["code"] == "not_author" {
            key.answer.expect(200);
            of_authors.insert(key.op.id.as_str());
            continue;
        }
        let (one, other) = (compared(&key.answer.body), compared(&session.answer.body));
        let has_a_reason = || with_a_reason().contains(key.op.id.as_str());
        if key.answer.status == session.answer.status && one != other && has_a_reason() {
            explained.insert(key.op.id.as_str());
        } else if key.answer.status != session.answer.status || one != other {
            different.push(format!("{} {}\n  by key {one}\n  by session {other}", key.op.id, key.path));
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    assert_eq!(of_authors, OF_AUTHORS.into());
    assert_eq!(explained, with_a_reason());
}
