//! A service to walk over: each answer is held against the contract.

use crate::operations::document::{Document, Op, has_rate_headers, well_formed};
use crate::operations::over_mcp;
use jsonschema::Validator;
use model::{Env, MemberRole, Scope, WorkspaceId};
use operation::{Contract, document};
use std::cell::RefCell;
use std::collections::BTreeMap;
use testkit::{Answer, Key, Kind, Member, TestApp};
use tokio::sync::OnceCell;

/// A service, the documents of its contract, and keys for what they need.
pub struct Sweep {
    pub app: TestApp,
    pub documents: Vec<Document>,
    pub workspace: String,
    /// By whether it is a partner's and whether it is live.
    pub keys: BTreeMap<(bool, bool), Key>,
    /// Whether requests are calls of tools.
    pub is_over_mcp: bool,
    /// An owner of the workspace who manages the installation too. Made when the first operation of the dashboard is called,
    /// because the examples know the ids of members.
    owner: OnceCell<Member>,
    /// What answers must fit, by operation and status.
    answers: RefCell<BTreeMap<(String, u16), Validator>>,
}

impl Sweep {
    /// A walk over all operations.
    pub async fn begin(kind: Kind) -> Self {
        let mut sweep = Self::of_api(kind).await;
        let text = document(&server::registry().unwrap(), Contract::Dashboard, server::VERSION).unwrap();
        sweep.documents.push(Document(serde_json::from_str(&text).unwrap()));
        sweep
    }

    /// A walk over the operations that programs can call.
    pub async fn of_api(kind: Kind) -> Self {
        let app = TestApp::new(kind).await;
        let documents = vec![
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
        Self {
            app,
            documents,
            workspace,
            keys,
            is_over_mcp: false,
            owner: OnceCell::new(),
            answers: RefCell::default(),
        }
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

    /// A key that may use the operation. One of the dashboard takes the token that [`Self::credential`] makes.
    pub fn key(&self, op: &Op, live: bool) -> &Key {
        &self.keys[&(op.partner_only, live)]
    }

    /// The owner of the workspace who calls operations of the dashboard.
    pub async fn owner(&self) -> &Member {
        let made = async || {
            let owner =
                self.app.member(WorkspaceId(self.workspace.parse().unwrap()), MemberRole::Owner).await;
            self.app.make_operator(&owner).await;
            owner
        };
        self.owner.get_or_init(made).await
    }

    /// What a request of the operation is sent with: the key, or a new token of a member who has just signed in.
    pub async fn credential(&self, op: &Op, key: &Key) -> Key {
        if op.session { self.app.fresh_token(self.owner().await, Env::Live).await } else { key.clone() }
    }

    pub async fn send(&self, op: &Op, path: &str, key: Option<&Key>, body: Option<&[u8]>) -> Answer {
        // Every request has a minute of its own, so that the walk meets no rate limit.
        self.app.data.clock.advance(chrono::Duration::seconds(61));
        if let Some(key) = key.filter(|_| self.is_over_mcp && !op.json_rpc) {
            return over_mcp::send(self, op, path, key, body).await;
        }
        let mut asking = self.app.ask(&op.method, path);
        if let Some(key) = key {
            asking = asking.key(&self.credential(op, key).await);
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
