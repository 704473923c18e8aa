//! Role × operation × own, foreign and blocked workspace, by session and by key, against docs/roles.txt.

use crate::operations::contract::repository_file;
use crate::operations::document::{Document, Op};
use auth::roles;
use model::{Env, MemberRole, Scope, WorkspaceId};
use operation::{Contract, document};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use testkit::{Answer, Key, Kind, Member, TestApp};

/// What docs/roles.txt says of an operation: a cell for each role, and whether members can use it in a blocked workspace.
struct Row {
    cells: BTreeMap<MemberRole, String>,
    is_open_when_blocked: bool,
}

/// The rows of the table of operations, by operation id.
fn table() -> BTreeMap<String, Row> {
    let text = repository_file("docs/roles.txt");
    let (_, operations) = text.split_once("# operation\t").expect("a table of operations");
    let mut lines = operations.lines();
    let head: Vec<&str> = lines.next().unwrap().split('\t').skip(5).collect();
    let roles: Vec<MemberRole> = head.iter().map(|word| MemberRole::parse(word).unwrap()).collect();
    assert_eq!(roles, MemberRole::ALL, "a column for each role");
    let row = |line: &str| {
        let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let is_open_when_blocked = cells[5] == "yes";
        let of_roles = roles.iter().copied().zip(cells[6..].iter().cloned()).collect();
        (cells[0].clone(), Row { cells: of_roles, is_open_when_blocked })
    };
    lines.map(row).collect()
}

/// Who asks: a member, and a key with the same scopes.
struct Pair {
    member: Member,
    keys: HashMap<Env, Key>,
}

impl Pair {
    async fn new(app: &TestApp, workspace: WorkspaceId, role: MemberRole) -> Self {
        let scopes: Vec<&str> = roles::scopes(role).iter().map(Scope::as_str).collect();
        let mut keys = HashMap::new();
        for env in Env::ALL {
            keys.insert(env, app.key(workspace, env, &scopes).await);
        }
        Self { member: app.member(workspace, role).await, keys }
    }

    /// A token and the key, for an environment.
    fn both(&self, app: &TestApp, env: Env) -> [(&'static str, Key); 2] {
        [("session", app.token(&self.member, env)), ("key", self.keys[&env].clone())]
    }
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
    // What comes before them is the same for all operations.
    assert_ne!(code, "not_a_member", "{}", answer.text);
    let is_refused = by_gates.contains(&code) || answer.status == 401 || answer.status == 429;
    is_refused.then(|| (answer.status, code.to_owned()))
}

/// What a cell says of an environment.
fn expected(cell: &str, env: Env) -> Option<(u16, String)> {
    match (cell, env) {
        ("yes", _) | ("live", Env::Live) => None,
        ("live", Env::Test) => Some((403, "test_mode_restricted".to_owned())),
        ("-", _) => Some((403, "missing_scope".to_owned())),
        _ => panic!("{cell}"),
    }
}

/// The operations that members can use: those of the public API, and those of the dashboard.
fn documents() -> [Document; 2] {
    let registry = server::registry().unwrap();
    [Contract::Public, Contract::Dashboard].map(|contract| {
        let text = document(&registry, contract, server::VERSION).unwrap();
        Document(serde_json::from_str(&text).unwrap())
    })
}

/// What a key gets where a member gets `refusal`: no key can use an operation of the dashboard.
fn for_keys(op: &Op, refusal: &Option<(u16, String)>) -> Option<(u16, String)> {
    if op.session { Some((401, "session_required".to_owned())) } else { refusal.clone() }
}

/// Asks every operation as a role.
async fn check(kind: Kind, role: MemberRole) {
    let app = TestApp::new(kind).await;
    let documents = documents();
    let table = table();
    let operations: Vec<(&Document, Op)> = documents
        .iter()
        .flat_map(|document| document.operations().into_iter().map(move |op| (document, op)))
        .collect();
    assert_eq!(operations.len(), table.len(), "a row for each operation");
    // A plan without a limit of requests.
    let own = app.bare_workspace("unlimited", 0).await;
    let foreign = app.bare_workspace("unlimited", 0).await;
    let blocked = app.bare_workspace("unlimited", 0).await;
    app.sql(format!("UPDATE workspaces SET blocked_reason = 'Unpaid.' WHERE id = {blocked}")).await;
    let (pair, cut) = (Pair::new(&app, own, role).await, Pair::new(&app, blocked, role).await);
    for (document, op) in &operations {
        // A workspace that is not known has no plan, so its requests have the default limit. The walk takes less than the ten
        // minutes of a recent sign-in.
        app.data.clock.advance(chrono::Duration::seconds(1));
        let row = &table[&op.id];
        let path = document.unknown_path(op, &own.to_string());
        let what = format!("{} {}", role.as_str(), op.id);
        for env in Env::ALL {
            let by_role = expected(&row.cells[&role], env);
            let mut statuses = BTreeSet::new();
            for (by, key) in pair.both(&app, env) {
                let answer = ask(&app, op, &path, &key, None).await;
                let expected = if by == "key" { for_keys(op, &by_role) } else { by_role.clone() };
                assert_eq!(refusal(&answer), expected, "{what} {} by {by}: {}", env.as_str(), answer.text);
                if answer.body["error"]["code"] == "missing_scope" {
                    assert_eq!(answer.body["error"]["param"].as_str(), op.scope.as_deref(), "{what}");
                }
                statuses.insert(answer.status);
            }
            assert!(op.session || statuses.len() == 1, "{what}: a session is answered as a key is");
        }
        let path = document.unknown_path(op, &foreign.to_string());
        let not_found = Some((404, "workspace_not_found".to_owned()));
        for (by, key) in pair.both(&app, Env::Live) {
            let answer = ask(&app, op, &path, &key, Some(foreign)).await;
            let expected = if by == "key" { for_keys(op, &not_found) } else { not_found.clone() };
            assert_eq!(refusal(&answer), expected, "{what} in a foreign workspace by {by}");
        }
        let path = document.unknown_path(op, &blocked.to_string());
        let is_blocked = Some((403, "workspace_blocked".to_owned()));
        for (by, key) in cut.both(&app, Env::Live) {
            let answer = ask(&app, op, &path, &key, None).await;
            let expected = match by {
                "key" => for_keys(op, &is_blocked),
                _ if row.is_open_when_blocked => expected(&row.cells[&role], Env::Live),
                _ => is_blocked.clone(),
            };
            assert_eq!(refusal(&answer), expected, "{what} in a blocked workspace by {by}");
        }
    }
}

#[testkit::both]
async fn owners_may_do_what_the_table_says(kind: Kind) {
    check(kind, MemberRole::Owner).await;
}

#[testkit::both]
async fn admins_may_do_what_the_table_says(kind: Kind) {
    check(kind, MemberRole::Admin).await;
}

#[testkit::both]
async fn managers_may_do_what_the_table_says(kind: Kind) {
    check(kind, MemberRole::Manager).await;
}

#[testkit::both]
async fn agents_may_do_what_the_table_says(kind: Kind) {
    check(kind, MemberRole::Agent).await;
}

#[testkit::both]
async fn viewers_may_do_what_the_table_says(kind: Kind) {
    check(kind, MemberRole::Viewer).await;
}
