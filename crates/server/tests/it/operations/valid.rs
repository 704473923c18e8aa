//! What the contract allows is done: small requests, made from the published schemas, are sent to every operation. What
//! is refused all the same stands in a list with its reason, which may only shrink.

use crate::operations::answers::seed;
use crate::operations::document::{Document, Op};
use crate::operations::sweep::{Sweep, minimal};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use testkit::Kind;

/// Rules that a JSON Schema cannot state: operation (`*` for all), `param` and reason. They are about what is stored, or
/// about the syntax of a text, and stand in the description of what they are about.
const REFUSED_EVERYWHERE: [(&str, &str, &str); 6] = [
    ("*", "starting_after", "an id or cursor that a page gave"),
    ("*", "filter_tree", "conditions about the collection's fields, as a JSON text in a query"),
    ("*", "expand", "fields of the collection that point to objects"),
    ("*", "primary_field", "a field of the collection"),
    ("*", "agent_version", "`draft` is for test keys"),
    ("*", "data.name", "a field that the collection requires"),
];

/// Those of single operations, which stand in their area: operation and `param`.
fn refusals() -> Vec<(String, String)> {
    let everywhere =
        REFUSED_EVERYWHERE.iter().map(|(operation, param, _)| ((*operation).to_owned(), (*param).to_owned()));
    let mut all: Vec<(String, String)> = everywhere.collect();
    for area in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../areas")).unwrap() {
        let Ok(text) = std::fs::read_to_string(area.unwrap().path().join("contract/refusals.tsv")) else {
            continue;
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split('\t');
            let [operation, param, rule] = std::array::from_fn(|_| fields.next().unwrap_or_default());
            assert!(!rule.is_empty(), "{line}: operation, param and rule, with tabs between");
            all.push((operation.to_owned(), param.to_owned()));
        }
    }
    all
}

/// The address of an operation on the sample objects.
pub fn address(op: &Op, document: &Document, ids: &BTreeMap<String, String>) -> String {
    document.ids(op).iter().fold(op.path.clone(), |path, name| {
        let id = sample_id(op, ids, name);
        path.replace(&format!("{{{name}}}"), id)
    })
}

/// The id of the sample object that a parameter of a path names. Where paths of several areas have a parameter of one name, the
/// samples name the id together with a part of the path before it, as in `flow-runs.runId`.
pub fn sample_id<'a>(op: &Op, ids: &'a BTreeMap<String, String>, name: &str) -> &'a String {
    let before = op.path.split('/').take_while(|part| *part != format!("{{{name}}}"));
    let own = before.filter_map(|part| ids.get(&format!("{part}.{name}"))).last();
    own.or_else(|| ids.get(name)).unwrap_or_else(|| panic!("{}: seed a {name}", op.id))
}

/// Queries and bodies that the contract allows.
fn requests(document: &Document, op: &Op) -> Vec<(String, Option<Value>)> {
    let bodies = op.body.as_ref().map_or_else(Vec::new, |schema| document.variants(schema, "body", 1));
    let required = document.query_samples(op, true).into_iter().map(|(name, text)| format!("{name}={text}&"));
    let required = format!("?{}", required.collect::<String>());
    let mut requests: Vec<_> = bodies.into_iter().map(|body| (required.clone(), Some(body))).collect();
    let smallest = op.body.as_ref().map(|schema| document.sample(schema, "body"));
    let optional = document.query_samples(op, false).into_iter();
    requests.extend(optional.map(|(name, text)| (format!("{required}{name}={text}"), smallest.clone())));
    requests.push((required, smallest));
    requests
}

#[testkit::both]
async fn what_the_contract_allows_is_done(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let ids = seed(&sweep).await;
    let refusals = refusals();
    let (mut refused, mut surprising) = (BTreeSet::new(), Vec::new());
    let mut operations: Vec<(&Document, Op)> = sweep.enveloped().collect();
    // What is changed beyond recognition, or gone, is asked for no more.
    let last = ["updateField", "moveItem", "bulkDeleteItems"];
    operations.sort_by_key(|(_, op)| (op.method == "DELETE", last.contains(&op.id.as_str())));
    for (document, op) in operations {
        let path = address(&op, document, &ids);
        for (place, (query, mut body)) in requests(document, &op).into_iter().enumerate() {
            // Names are unique.
            if let Some(name) = body.as_mut().and_then(|body| body.get_mut("name")) {
                *name = format!("x{place}").into();
            }
            let bytes = body.as_ref().map(|body| body.to_string().into_bytes());
            let answer = sweep
                .send(&op, &format!("{path}{query}"), Some(sweep.key(&op, true)), bytes.as_deref())
                .await;
            if answer.status != 400 {
                continue;
            }
            let param = answer.body["error"]["param"].as_str().unwrap_or_default();
            let known = refusals
                .iter()
                .position(|(id, at)| ["*", op.id.as_str()].contains(&id.as_str()) && at == param);
            match known {
                Some(known) => drop(refused.insert(known)),
                None => surprising.push(format!("{}{query} {body:?} → {}", op.id, answer.text)),
            }
        }
    }
    assert!(surprising.is_empty(), "{}", surprising.join("\n"));
    let idle: Vec<_> =
        (0..refusals.len()).filter(|known| !refused.contains(known)).map(|known| &refusals[known]).collect();
    assert!(idle.is_empty(), "these are done, so they need no exception: {idle:?}");
}

#[testkit::both]
async fn ids_have_one_spelling(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let ids = seed(&sweep).await;
    for (document, op) in sweep.enveloped() {
        let body = minimal(document, &op);
        let is_number = |name: &String| sample_id(&op, &ids, name).parse::<i64>().is_ok();
        for name in document.ids(&op).into_iter().filter(is_number) {
            let id = &ids[&name];
            for other in [
                format!("+{id}"),
                format!("%2B{id}"),
                format!("0{id}"),
                format!("{id}.0"),
                format!("%20{id}"),
                format!("{id}%20"),
                format!("{id}e0"),
            ] {
                let mut ids = ids.clone();
                ids.insert(name.clone(), other);
                let path = address(&op, document, &ids);
                let answer = sweep.send(&op, &path, Some(sweep.key(&op, true)), body.as_deref()).await;
                let code = if name == "workspaceId" { "workspace_not_found" } else { "not_found" };
                answer.expect_error(404, code);
            }
        }
    }
}

#[testkit::both]
async fn limits_of_opt_in_lists_are_published(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let ids = seed(&sweep).await;
    let mut seen = 0;
    for (document, op) in sweep.operations().filter(|(_, op)| op.paging.as_deref() == Some("opt_in")) {
        seen += 1;
        assert_eq!(document.query_schema(&op, "limit")["maximum"], 100, "{}", op.id);
        let path = address(&op, document, &ids);
        let query = if op.id == "searchConversations" { "q=espresso&" } else { "" };
        for form in ["", "paginate=true&"] {
            let ask = async |limit: &str| {
                sweep
                    .send(
                        &op,
                        &format!("{path}?{query}{form}limit={limit}"),
                        Some(sweep.key(&op, true)),
                        None,
                    )
                    .await
            };
            ask("100").await.expect(200);
            assert_eq!(
                ask("101").await.expect_error(400, "validation_error").as_deref(),
                Some("limit"),
                "{}",
                op.id
            );
        }
    }
    assert!(seen > 10, "{seen}");
}
