//! Role × operation × own, foreign and blocked workspace, by session and by key, against docs/roles.txt.

use crate::operations::contract::repository_file;
use crate::operations::document::{Document, Op};
use auth::roles;
use model::{Env, MemberRole, Scope, WorkspaceId};
use std::collections::BTreeMap;
use testkit::{Answer, Key, Kind, TestApp};

/// What docs/roles.txt says of an operation: a cell for each role.
type Row = BTreeMap<MemberRole, String>;

/// The rows of the table of operations, by operation id.
fn table() -> BTreeMap<String, Row> {
    let text = repository_file("docs/roles.txt");
    let (_, operations) = text.split_once("# operation\t").expect("a table of operations");
    let mut lines = operations.lines();
    let head: Vec<&str> = lines.next().unwrap().split('\t').skip(4).collect();
    let roles: Vec<MemberRole> = head.iter().map(|word| MemberRole::parse(word).unwrap()).collect();
    assert_eq!(roles, MemberRole::ALL, "a column for each role");
    let row = |line: &str| {
        let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
        (cells[0].clone(), roles.iter().copied().zip(cells[5..].iter().cloned()).collect())
    };
    lines.map(row).collect()
}

/// Who asks: the member and a key with the same scopes, in one environment.
struct Pair {
    token: Key,
    key: Key,
}

async fn pair(app: &TestApp, workspace: WorkspaceId, role: MemberRole, env: Env) -> Pair {
    let member = app.member(workspace, role).await;
    let scopes: Vec<&str> = roles::scopes(role).iter().map(Scope::as_str).collect();
    Pair { token: app.token(&member, env), key: app.key(workspace, env, &scopes).await }
}

/// A request with a body that no operation takes: who may use the operation learns that, and nothing changes.
async fn ask(app: &TestApp, op: &Op, path: &str, key: &Key, foreign: Option<WorkspaceId>) -> Answer {
    // A long poll would wait for events.
    let no_wait = if op.takes_query("wait_seconds") { "&wait_seconds=0" } else { "" };
    let separator = if no_wait.is_empty() || path.contains('?') { "" } else { "?" };
    let mut asking = app.ask(&op.method, &format!("{path}{separator}{no_wait}")).key(key);
    if let Some(foreign) = foreign.filter(|_| !op.path.contains("{workspaceId}")) {
        asking = asking.header("x-svc-workspace", &foreign.to_string());
    }
    if op.method != "GET" {
        asking = asking.bytes("application/json", b"{");
    }
    asking.send().await
}

/// What the gates decide: the status and the code, where they refuse.
fn refusal(answer: &Answer) -> Option<(u16, String)> {
    let code = answer.body["error"]["code"].as_str().unwrap_or_default();
    let by_gates = ["missing_scope", "test_mode_restricted", "workspace_not_found", "workspace_blocked"];
    let is_refused = by_gates.contains(&code) || answer.status == 401 || answer.status == 429;
    is_refused.then(|| (answer.status, code.to_owned()))
}

#[testkit::both]
async fn roles_may_do_what_the_table_says(kind: Kind) {
    let app = TestApp::new(kind).await;
    let document = Document::fetch(&app, "openapi.public.json").await;
    let table = table();
    let operations = document.operations();
    assert_eq!(operations.len(), table.len(), "a row for each public operation");
    // A plan without a limit of requests.
    let own = app.bare_workspace("unlimited", 0).await;
    let foreign = app.bare_workspace("unlimited", 0).await;
    let blocked = app.bare_workspace("unlimited", 0).await;
    app.sql(format!("UPDATE workspaces SET blocked_reason = 'Unpaid.' WHERE id = {blocked}")).await;
    for role in MemberRole::ALL {
        for env in [Env::Live, Env::Test] {
            let Pair { token, key } = pair(&app, own, role, env).await;
            let cut = pair(&app, blocked, role, env).await;
            for op in &operations {
                let cell = table[&op.id][&role].as_str();
                let expected = match (cell, env) {
                    ("yes", _) | ("live", Env::Live) => None,
                    ("live", Env::Test) => Some((403, "test_mode_restricted".to_owned())),
                    ("-", _) => Some((403, "missing_scope".to_owned())),
                    _ => panic!("{}: {cell}", op.id),
                };
                let path = document.unknown_path(op, &own.to_string());
                let what = format!("{} {} {}", role.as_str(), env.as_str(), op.id);
                let by_session = ask(&app, op, &path, &token, None).await;
                assert_eq!(refusal(&by_session), expected, "{what} by session: {}", by_session.text);
                let by_key = ask(&app, op, &path, &key, None).await;
                assert_eq!(refusal(&by_key), expected, "{what} by key: {}", by_key.text);
                assert_eq!(by_session.status, by_key.status, "{what}");
                if expected.as_ref().is_some_and(|(_, code)| code == "missing_scope") {
                    assert_eq!(by_session.body["error"]["param"].as_str(), op.scope.as_deref(), "{what}");
                }
                // The workspaces of others, whatever the role is: one environment is enough.
                if env == Env::Test {
                    continue;
                }
                let path = document.unknown_path(op, &foreign.to_string());
                for (by, key) in [("session", &token), ("key", &key)] {
                    let answer = ask(&app, op, &path, key, Some(foreign)).await;
                    let expected = Some((404, "workspace_not_found".to_owned()));
                    assert_eq!(refusal(&answer), expected, "{what} in a foreign workspace by {by}");
                }
                let path = document.unknown_path(op, &blocked.to_string());
                for (by, key) in [("session", &cut.token), ("key", &cut.key)] {
                    let answer = ask(&app, op, &path, key, None).await;
                    let expected = Some((403, "workspace_blocked".to_owned()));
                    assert_eq!(refusal(&answer), expected, "{what} in a blocked workspace by {by}");
                }
            }
        }
    }
}
