//! A service to walk over: each answer is held against the contract.

use crate::operations::document::{Document, Op, has_rate_headers, well_formed};
use crate::operations::over_mcp;
use jsonschema::Validator;
use model::{Env, Scope};
use std::cell::RefCell;
use std::collections::BTreeMap;
use testkit::{Answer, Key, Kind, TestApp};

/// A service, its two documents, and keys for what they need.
pub struct Sweep {
    pub app: TestApp,
    pub documents: [Document; 2],
    pub workspace: String,
    /// By whether it is a partner's and whether it is live.
    pub keys: BTreeMap<(bool, bool), Key>,
    /// Whether requests are calls of tools.
    pub is_over_mcp: bool,
    /// What answers must fit, by operation and status.
    answers: RefCell<BTreeMap<(String, u16), Validator>>,
}

impl Sweep {
    pub async fn begin(kind: Kind) -> Self {
        let app = TestApp::new(kind).await;
        let documents = [
            Document::fetch(&app, "openapi.public.json").await,
            Document::fetch(&app, "openapi.partner.json").await,
        ];
        let workspace = app.workspace().await;
        let all: Vec<&str> =
            Scope::ALL.iter().filter(|scope| !scope.is_retired()).map(|scope| scope.as_str()).collect();
        let mut keys = BTreeMap::new();
        for (live, env) in [(true, Env::Live), (false, Env::Test)] {
            keys.insert((false, live), app.key(workspace, env, &["*"]).await);
            keys.insert((true, live), app.partner_key(env, &all, &[workspace]).await.1);
        }
        // The second partner took the workspace over from the first, so both keys get the same one.
        let workspace = workspace.to_string();
        Self { app, documents, workspace, keys, is_over_mcp: false, answers: RefCell::default() }
    }

    pub fn operations(&self) -> impl Iterator<Item = (&Document, Op)> {
        self.documents
            .iter()
            .flat_map(|document| document.operations().into_iter().map(move |op| (document, op)))
    }

    /// The operations whose messages have the envelope.
    pub fn enveloped(&self) -> impl Iterator<Item = (&Document, Op)> {
        self.operations().filter(|(_, op)| !op.json_rpc)
    }

    /// A key that may use the operation.
    pub fn key(&self, op: &Op, live: bool) -> &Key {
        &self.keys[&(op.partner_only, live)]
    }

    pub async fn send(&self, op: &Op, path: &str, key: Option<&Key>, body: Option<&[u8]>) -> Answer {
        // Every request has a minute of its own, so that the walk meets no rate limit.
        self.app.data.clock.advance(chrono::Duration::seconds(61));
        if let Some(key) = key.filter(|_| self.is_over_mcp && !op.json_rpc) {
            return over_mcp::send(self, op, path, key, body).await;
        }
        let mut asking = self.app.ask(&op.method, path);
        if let Some(key) = key {
            asking = asking.key(key);
        }
        asking = match (op.streamed.as_deref(), body) {
            (Some("multipart/form-data"), _) => asking.form(&[], ("a.txt", b"Hello")),
            (Some(other), _) => asking.bytes(other, b"Hello"),
            (None, Some(body)) => asking.bytes("application/json", body),
            (None, None) => asking,
        };
        let answer = asking.send().await;
        let what = format!("{} {path} → {}", op.id, answer.status);
        well_formed(&answer, &what);
        has_rate_headers(&answer, &what);
        let document = self.documents.iter().find(|document| document.has(op)).expect("a document has it");
        let mut answers = self.answers.borrow_mut();
        let validator = answers.entry((op.id.clone(), answer.status)).or_insert_with(|| {
            let schema = document.answer_schema(op, answer.status);
            let schema = schema.unwrap_or_else(|| panic!("{what} is not documented: {}", answer.text));
            jsonschema::validator_for(&schema).expect("the schema compiles")
        });
        let errors: Vec<String> = validator
            .iter_errors(&answer.body)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{what}: {errors:?}: {}", answer.text);
        answer
    }
}

pub fn minimal(document: &Document, op: &Op) -> Option<Vec<u8>> {
    op.body.as_ref().map(|schema| document.sample(schema, "body").to_string().into_bytes())
}
