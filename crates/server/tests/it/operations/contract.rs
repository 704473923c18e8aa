//! Every operation of the served contract keeps the rules that all operations have. The operations come from the
//! document, so one that a colleague adds is walked without a change here.

use crate::operations::document::{Document, METHODS, has_rate_headers, well_formed};
use crate::operations::sweep::{Sweep, minimal};
use model::{Env, Scope};
use operation::{Contract, document};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use testkit::Kind;

/// Specification 5.2.
const RESTRICTED: [&str; 8] = [
    "integrations:execute",
    "channels:send",
    "conversions:write",
    "channels:manage",
    "workspaces:provision",
    "workspaces:recharge",
    "partner:billing:manage",
    "snapshots:install",
];

/// Operations whose smallest request is refused, because of what no schema can state: the code and the parameter.
const DEMANDING: [(&str, &str, &str); 15] = [
    // A network that answers.
    ("connectChannel", "validation_error", "network_url"),
    // A password that is long enough.
    ("changeOwnPassword", "validation_error", "new_password"),
    // A scope.
    ("createKey", "validation_error", "scopes[0]"),
    // A name of which an address can be made.
    ("createWorkspace", "validation_error", "slug"),
    // A tool of the type `http` needs a request.
    ("attachAgentTool", "validation_error", "http"),
    // The words of the trigger that the smallest request has.
    ("createAutomation", "validation_error", "trigger.config.words"),
    // One of several fields identifies a contact.
    ("createContact", "validation_error", "data"),
    ("upsertContact", "validation_error", "data"),
    ("bulkUpsertContacts", "validation_error", "rows[0].data"),
    // A program.
    ("createFunction", "validation_error", "code"),
    // A date or a recurrence.
    ("createReminder", "validation_error", "due_at"),
    // A filter or a list of contacts.
    ("createSegment", "validation_error", "filter_tree"),
    // A file or its content.
    ("importContacts", "validation_error", "file_id"),
    // No test reaches the server that it names.
    ("importFileFromUrl", "fetch_failed", "url"),
    // A package in one of three ways.
    ("importSkill", "validation_error", "content"),
];

#[testkit::both]
async fn without_a_key_nothing_is_returned(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    for (document, op) in sweep.operations() {
        let path = document.unknown_path(&op, &sweep.workspace);
        let answer = sweep.send(&op, &path, None, Some(b"{")).await;
        answer.expect_error(401, "missing_api_key");
        assert_eq!(answer.body["error"]["type"], "authentication_error");
    }
}

#[testkit::both]
async fn only_what_changes_something_takes_a_key_for_its_repetition(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let mut reading = Vec::new();
    for (document, op) in sweep.operations() {
        let offers = op.takes_header("Idempotency-Key");
        let extension = &document.0["paths"][&op.path][op.method.to_lowercase()]["x-svc-idempotent"];
        assert_eq!(extension == &json!(true), offers, "{}", op.id);
        match op.method.as_str() {
            "GET" => assert!(!offers, "{}", op.id),
            _ if !offers && !op.json_rpc => reading.push(op.id),
            _ => {}
        }
    }
    // Their functions take neither a transaction nor the means to begin one, so they keep no answer either.
    assert_eq!(reading, ["matchSkills", "testAutomation", "normalizePhone"]);
}

#[testkit::both]
async fn every_scope_is_required(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    for (document, op) in sweep.operations() {
        // Roles have permissions, not keys: members/matrix.rs asks with each role.
        let Some(scope) = op.scope.as_ref().filter(|_| !op.session) else { continue };
        let known = Scope::parse(scope).unwrap_or_else(|| panic!("{}: {scope} is no scope", op.id));
        assert!(!known.is_retired(), "{}: {scope} unlocks nothing", op.id);
        assert_eq!(op.partner_only, known.is_partner_only(), "{}", op.id);
        let other = if scope == "tasks:read" { "tasks:write" } else { "tasks:read" };
        let key =
            sweep.app.key(model::WorkspaceId(sweep.workspace.parse().unwrap()), Env::Live, &[other]).await;
        let path = document.unknown_path(&op, &sweep.workspace);
        // Whoever lacks the scope learns nothing of the body or of ids.
        let answer = sweep.send(&op, &path, Some(&key), Some(b"{")).await;
        assert_eq!(answer.expect_error(403, "missing_scope").as_ref(), Some(scope), "{}", op.id);
        assert_eq!(answer.body["error"]["type"], "invalid_request_error");
        assert_eq!(answer.headers["x-svc-required-scope"], *scope);
    }
}

#[testkit::both]
async fn test_keys_are_kept_from_real_effects(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    for (document, op) in sweep.operations() {
        let by_scope = op.scope.as_deref().is_some_and(|scope| RESTRICTED.contains(&scope));
        assert_eq!(op.restricted, by_scope, "{}", op.id);
        if op.restricted {
            let path = document.unknown_path(&op, &sweep.workspace);
            let answer = sweep.send(&op, &path, Some(sweep.key(&op, false)), Some(b"{")).await;
            assert_eq!(answer.expect_error(403, "test_mode_restricted"), op.scope, "{}", op.id);
        }
    }
}

#[testkit::both]
async fn ids_that_name_nothing_are_not_found(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    for (document, op) in sweep.operations().filter(|(_, op)| op.path.contains('{')) {
        let body = minimal(document, &op);
        let path = document.unknown_path(&op, "999999999");
        let answer = sweep.send(&op, &path, Some(sweep.key(&op, true)), body.as_deref()).await;
        let code = if op.path.contains("{workspaceId}") { "workspace_not_found" } else { "not_found" };
        answer.expect_error(404, code);
    }
}

#[testkit::both]
async fn the_smallest_request_succeeds(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    for (document, op) in sweep.enveloped() {
        let path = document.unknown_path(&op, &sweep.workspace);
        if op.path.replace("{workspaceId}", "").contains('{') {
            continue;
        }
        let body = minimal(document, &op);
        let answer = sweep.send(&op, &path, Some(sweep.key(&op, true)), body.as_deref()).await;
        if let Some((_, code, param)) = DEMANDING.iter().find(|(id, ..)| *id == op.id) {
            assert_eq!(answer.expect_error(400, code).as_deref(), Some(*param), "{}", op.id);
            continue;
        }
        assert!(answer.status < 300, "{}: {}", op.id, answer.text);
        assert!(answer.body.get("data").is_some(), "{}", op.id);
    }
}

#[testkit::both]
async fn rows_of_lists_have_names(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    for (document, op) in sweep.operations() {
        let Some(answer) = document.answer_schema(&op, 200) else { continue };
        let rows = &answer["allOf"][0]["properties"]["data"]["items"];
        // `Rows<T>` and the lists of the four pagings name their rows; `Json<Vec<T>>` writes them out.
        assert!(rows.get("properties").is_none() && rows.get("allOf").is_none(), "{}: {rows}", op.id);
    }
}

#[testkit::both]
async fn bodies_are_read_strictly(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    for (document, op) in sweep.enveloped() {
        let Some(schema) = &op.body else { continue };
        let key = sweep.key(&op, true);
        let path = document.unknown_path(&op, &sweep.workspace);
        let no_body: &[_] = if op.body_is_optional { &[] } else { &[&b""[..]] };
        for broken in
            no_body.iter().copied().chain([&b"{"[..], b"{\"a\":1}}", b"\xff", b"[]", b"null", b"\"x\""])
        {
            let answer = sweep.send(&op, &path, Some(key), Some(broken)).await;
            let param = answer.expect_error(400, "validation_error");
            assert_eq!(param.as_deref(), Some("body"), "{} {}", op.id, String::from_utf8_lossy(broken));
        }
        let mut body = document.sample(schema, "body");
        body["surprise"] = json!(1);
        let answer = sweep.send(&op, &path, Some(key), Some(body.to_string().as_bytes())).await;
        let param = answer.expect_error(400, "validation_error");
        assert_eq!(param.as_deref(), Some("surprise"), "{}", op.id);
        let key = sweep.credential(&op, key).await;
        let asking =
            sweep.app.ask(&op.method, &path).key(&key).bytes("text/plain", body.to_string().as_bytes());
        asking.send().await.expect_error(415, "unsupported_media_type");
    }
}

#[testkit::both]
async fn unknown_query_parameters_are_refused(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    for (document, op) in sweep.enveloped() {
        let (key, body) = (sweep.key(&op, true), minimal(document, &op));
        let path = document.unknown_path(&op, &sweep.workspace);
        // Required parameters are there already.
        let with = |more: &str| format!("{path}{}{more}", if path.contains('?') { '&' } else { '?' });
        let lists = op.paging.is_some();
        let answer = sweep.send(&op, &with("no_such_parameter=1"), Some(key), body.as_deref()).await;
        assert_eq!(answer.status, 400, "{}: {}", op.id, answer.text);
        let param = answer.expect_error(400, "validation_error");
        assert_eq!(param.as_deref(), Some("no_such_parameter"), "{}", op.id);
        let answer = sweep.send(&op, &with("lmit=5"), Some(key), body.as_deref()).await;
        answer.expect_error(400, "validation_error");
        assert_eq!(answer.text.contains("did you mean `limit`?"), lists, "{}: {}", op.id, answer.text);
    }
}

#[testkit::both]
async fn paging_parameters_of_other_modes_are_refused(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let mut lists = 0;
    for (document, op) in sweep.enveloped() {
        let (key, body) = (sweep.key(&op, true), minimal(document, &op));
        let path = document.unknown_path(&op, &sweep.workspace);
        let (taken, hint): (&[&str], _) = match op.paging.as_deref() {
            None => (&[], "it has no pages"),
            Some("cursor") => {
                (&["limit", "starting_after"], "this list is paged with `limit` and `starting_after`")
            }
            // Specification 7.4: `starting_after` is ignored.
            Some("offset") => {
                (&["limit", "offset", "starting_after"], "this list is paged with `limit` and `offset`")
            }
            Some("page") => (&["limit", "page"], "this list is paged with `limit` and `page`"),
            Some("opt_in") => (
                &["limit", "paginate", "starting_after"],
                "this list is paged with `paginate=true`, `limit` and `starting_after`",
            ),
            Some(other) => panic!("{}: {other}", op.id),
        };
        lists += usize::from(op.paging.is_some());
        for (name, value) in
            [("limit", "5"), ("offset", "0"), ("page", "2"), ("paginate", "true"), ("starting_after", "1")]
        {
            if op.takes_query(name) {
                continue;
            }
            let path = format!("{path}{}{name}={value}", if path.contains('?') { '&' } else { '?' });
            let answer = sweep.send(&op, &path, Some(key), body.as_deref()).await;
            if taken.contains(&name) {
                assert_ne!(answer.status, 400, "{} {name}: {}", op.id, answer.text);
                continue;
            }
            let param = answer.expect_error(400, "validation_error");
            assert_eq!(param.as_deref(), Some(name), "{}", op.id);
            assert!(answer.text.contains(hint), "{} {name}: {}", op.id, answer.text);
        }
    }
    assert!(lists > 40, "{lists}");
}

#[testkit::both]
async fn other_methods_are_refused_with_the_list(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let key = &sweep.keys[&(false, true)];
    let is_json_rpc = |path: &str| sweep.operations().any(|(_, op)| op.json_rpc && op.path == path);
    for (path, known) in sweep.documents.iter().flat_map(Document::paths) {
        let path = path.replace("{workspaceId}", &sweep.workspace);
        for method in METHODS.iter().filter(|method| !known.iter().any(|known| known == *method)) {
            sweep.app.data.clock.advance(chrono::Duration::seconds(61));
            let path = path.replace(['{', '}'], "");
            let answer = sweep.app.ask(method, &path).key(key).send().await;
            answer.expect_error(405, "method_not_allowed");
            well_formed(&answer, &path);
            // MCP clients poll GET, so that is refused before the key is looked at.
            if !is_json_rpc(&path) {
                has_rate_headers(&answer, &path);
            }
            let allow: BTreeSet<&str> = answer.headers["allow"].split(", ").collect();
            assert_eq!(allow, known.iter().map(String::as_str).collect(), "{path}");
        }
    }
}

pub fn repository_file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}; run `make openapi`"))
}

#[test]
fn the_committed_documents_are_fresh() {
    let registry = server::registry().unwrap();
    for (name, made) in [
        ("openapi.public.json", document(&registry, Contract::Public, server::VERSION).unwrap()),
        ("openapi.partner.json", document(&registry, Contract::Partner, server::VERSION).unwrap()),
        ("openapi.dashboard.json", document(&registry, Contract::Dashboard, server::VERSION).unwrap()),
        ("docs/operations.txt", server::cli::table(&registry)),
        ("docs/roles.txt", server::cli::roles_document(&registry)),
    ] {
        assert!(repository_file(name) == made, "{name} is stale: run `make openapi`");
    }
}

#[test]
fn the_version_is_that_of_the_newest_changelog_entry() {
    let public: Value = serde_json::from_str(&repository_file("openapi.public.json")).unwrap();
    let changelog = repository_file("CHANGELOG.md");
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## ")).unwrap();
    assert_eq!(public["info"]["version"], newest);
}

/// Generators make of a bare `object` one that has no fields.
#[test]
fn free_objects_say_so() {
    fn sweep(value: &Value, path: &str) {
        if let Some(parts) = value.as_object() {
            let fields =
                ["properties", "additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf"];
            let is_bare = parts.get("type") == Some(&json!("object"))
                && !fields.iter().any(|name| parts.contains_key(*name));
            assert!(!is_bare, "{path}");
        }
        match value {
            Value::Array(parts) => parts.iter().for_each(|part| sweep(part, path)),
            Value::Object(parts) => {
                for (name, part) in parts {
                    sweep(part, &format!("{path}/{name}"));
                }
            }
            _ => {}
        }
    }
    for name in ["openapi.public.json", "openapi.partner.json", "openapi.dashboard.json"] {
        sweep(&serde_json::from_str(&repository_file(name)).unwrap(), name);
    }
}

#[test]
fn names_stand_for_one_thing_and_nothing_dangles() {
    for name in ["openapi.public.json", "openapi.partner.json", "openapi.dashboard.json"] {
        let document = Document(serde_json::from_str(&repository_file(name)).unwrap());
        let mut ids = BTreeSet::new();
        for op in document.operations() {
            assert!(ids.insert(op.id.clone()), "{name}: {} is there twice", op.id);
        }
        let mut used = BTreeSet::new();
        references(&document.0, &mut used);
        for reference in &used {
            document.resolved(&json!({ "$ref": reference }));
        }
        for schema in document.0["components"]["schemas"].as_object().unwrap().keys() {
            assert!(
                used.contains(&format!("#/components/schemas/{schema}")),
                "{name}: nothing uses {schema}"
            );
            // A container's own name says nothing, and two containers would share it.
            assert!(
                !["BTreeMap", "HashMap", "Vec", "Option", "String"].contains(&schema.as_str()),
                "{name}: {schema}"
            );
        }
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            // OpenAPI 3.0's way of saying it, which 3.1 ignores.
            assert!(!fields.contains_key("nullable"), "{value}");
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
