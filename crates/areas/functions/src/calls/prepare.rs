//! Preparation of a call: its content, its rights, its variables, and its row.

use super::content::{Content, Prepared, Publisher};
use super::service::FunctionCalls;
use crate::draft::model::{FunctionRow, FunctionStatus};
use crate::draft::versions::VersionRow;
use crate::history::model::{InvocationCaller, InvocationMode, InvocationStatus};
use crate::history::rows::InvocationRow;
use crate::host::{CallHost, HostSettings};
use crate::network::Fixture;
use auth::keys;
use model::{
    Actor, ActorType, Caller, Chain, Code, ContactId, Env, Error, EventId, FunctionId, InvocationId,
    JsonText, Result, RunId, ScopeSet, Timestamp,
};
use operation::{Resource, Version};
use ports::{FunctionEffect, KnownVariable};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::Read;

/// How much longer than its deadline a call may take before its process counts as gone, in seconds: it waits for a place, is
/// made twice where its worker is lost, and is written down.
const LEASE_SLACK_SECONDS: i64 = 60;
/// The moment at which the clock of tests stands: 2026-01-01T12:00:00Z.
const TEST_CLOCK: i64 = 1_767_268_800_000;
/// The seed of the random numbers of tests.
const TEST_SEED: u64 = 1;

/// Which content of a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chosen {
    /// The published version.
    Published,
    /// A version.
    Version(i64),
    /// The draft.
    Draft,
}

/// A call that is asked for.
pub(super) struct Asked {
    pub(super) caller: Caller,
    pub(super) function: FunctionId,
    pub(super) chosen: Chosen,
    pub(super) mode: InvocationMode,
    pub(super) input: JsonText,
    /// Values of secrets in the input.
    pub(super) hidden: Vec<String>,
    pub(super) fixtures: Vec<Fixture>,
    /// What calls.
    pub(super) by: InvocationCaller,
    /// The run whose step or guardrail calls.
    pub(super) run: Option<RunId>,
    pub(super) contact: Option<ContactId>,
    /// A second call with the same key gets the outcome of the first.
    pub(super) once: Option<String>,
    /// `ctx.idempotencyKey`, if it is not the id of the call.
    pub(super) idempotency_key: Option<String>,
    /// The longest time that the caller waits.
    pub(super) patience: Option<Duration>,
}

/// What the database knows of a call.
struct Loaded {
    content: Arc<Content>,
    scopes: ScopeSet,
    variables: BTreeMap<String, KnownVariable>,
}

impl FunctionCalls {
    /// Finds out what a call may do, and checks its input.
    ///
    /// # Errors
    /// `not_found`, `invalid_state`, `test_mode_restricted`, `validation_error` for the input.
    pub(super) async fn prepare(&self, asked: Asked) -> Result<Prepared> {
        if asked.mode == InvocationMode::Live && asked.caller.key.env == Env::Test {
            let message = "A test key calls functions in test mode only.";
            return Err(Error::new(Code::TestModeRestricted, message).param("mode"));
        }
        let (calls, caller) = (self.clone(), asked.caller.clone());
        let (function, chosen, mode) = (asked.function, asked.chosen, asked.mode);
        let loaded = self.0.db.read(move |read| calls.load(read, &caller, function, chosen, mode)).await?;
        let most = self.0.sandbox.settings().limits.input;
        if asked.input.as_str().len() > most {
            return Err(Error::invalid("input", format_args!("must not be larger than {most} bytes")));
        }
        if let Some(mismatch) = loaded.content.input_mismatch(&asked.input.parse()?) {
            return Err(Error::invalid("input", format_args!("must fit the input schema: {mismatch}")));
        }
        Ok(self.ready(asked, loaded))
    }

    fn load(
        &self,
        read: &mut Read,
        caller: &Caller,
        function: FunctionId,
        chosen: Chosen,
        mode: InvocationMode,
    ) -> Result<Loaded> {
        let workspace = caller.workspace_id();
        let row = FunctionRow::find(read, workspace, &function)?;
        let is_live = mode == InvocationMode::Live;
        let number = match chosen {
            Chosen::Draft => None,
            Chosen::Version(number) => Some(number),
            Chosen::Published => Some(row.published_version.ok_or_else(|| {
                refusal("not_published", "The function was never published. Publish it, or call its draft.")
            })?),
        };
        if is_live && number.is_some() && row.status != FunctionStatus::Active {
            return Err(refusal("inactive", "The function is not active."));
        }
        let content = match number {
            None => Arc::new(Content::draft(&row.code, row.settings.parse()?)),
            Some(number) => self
                .0
                .contents
                .get_or_read(function, number, || VersionRow::find(read, workspace, &function, number))?,
        };
        let granted = match &content.publisher {
            Some(publisher) if is_live => standing(read, caller, publisher)?,
            _ => caller.key.scopes,
        };
        let scopes = content.settings.scope_set().without(|scope| !granted.contains(scope));
        let keys: Vec<&str> = content.settings.variables.iter().map(String::as_str).collect();
        let env = if is_live { Env::Live } else { Env::Test };
        let variables = self.0.variables.values(read, workspace, env, &keys)?;
        Ok(Loaded { content, scopes, variables })
    }

    fn ready(&self, mut asked: Asked, loaded: Loaded) -> Prepared {
        let Loaded { content, scopes, variables } = loaded;
        let (now, random) = (self.0.db.now(), self.0.db.random());
        let id = InvocationId::new(now, &*random);
        let settings = &content.settings;
        let workspace = asked.caller.workspace_id();
        let is_live = asked.mode == InvocationMode::Live;
        let deadline = Duration::from_millis(settings.timeout_ms.unsigned_abs());
        let deadline = asked.patience.map_or(deadline, |patience| patience.min(deadline));
        // The effects of a call are one step after what led to it.
        let chain = asked.caller.chain.as_ref().map(Chain::next).or_else(|| started_by(&id));
        let (secrets, vars) = split(variables);
        let actor =
            Actor { kind: ActorType::Function, id: asked.function.to_string(), run_id: asked.run.clone() };
        let allowed = HostSettings {
            workspace,
            function: asked.function,
            caller: Caller { chain: chain.clone(), ..asked.caller.acting(actor, scopes) },
            livemode: is_live,
            network: content.settings.network.clone(),
            secrets,
            hidden: std::mem::take(&mut asked.hidden),
            fixtures: std::mem::take(&mut asked.fixtures),
            effect: content.settings.effect,
        };
        let host = CallHost::new(&self.0.host, allowed);
        let input = JsonText::printed(host.mask_json(asked.input.as_str()));
        let row = begun(&asked, &content, id.clone(), input, chain.as_ref(), now);
        let version = content.version.map_or_else(|| "draft".to_owned(), |version| version.to_string());
        let call = sandbox::Call {
            secrets: host.secrets(),
            vars: Value::Object(vars).to_string(),
            contact: asked.contact.map(|id| json!({ "id": id }).to_string()),
            run: asked.by.run_id.as_ref().map(|id| json!({ "id": id }).to_string()),
            idempotency_key: Some(asked.idempotency_key.unwrap_or_else(|| id.to_string())),
            livemode: is_live,
            // A repetition of an idempotent call has the same `ctx.idempotencyKey`.
            effect: if settings.effect == FunctionEffect::Read || settings.idempotent {
                sandbox::Effect::Read
            } else {
                sandbox::Effect::Write
            },
            fixed: (!is_live).then_some(sandbox::Fixed { now: TEST_CLOCK, seed: TEST_SEED }),
            strict: !is_live || content.version.is_none(),
            deadline: Some(deadline),
            memory: usize::try_from(settings.memory_mb << 20).ok(),
            ..sandbox::Call::new(asked.input.as_str())
        };
        let key = sandbox::Key {
            workspace: workspace.to_string(),
            version: format!("{}/{version}", asked.function),
        };
        Prepared { row, key, call, host, content: content.clone() }
    }
}

/// The row of a call that begins. `input` is without the values of secrets.
fn begun(
    asked: &Asked,
    content: &Content,
    id: InvocationId,
    input: JsonText,
    chain: Option<&Chain>,
    now: Timestamp,
) -> InvocationRow {
    InvocationRow {
        id,
        workspace_id: asked.caller.workspace_id(),
        function_id: asked.function,
        version: content.version,
        mode: asked.mode,
        status: InvocationStatus::Running,
        input,
        output: None,
        error: None,
        logs: None,
        fetches: None,
        warnings: None,
        duration_ms: None,
        memory_peak_bytes: None,
        caller: JsonText::of(&asked.by),
        chain: chain.map(JsonText::of),
        once_key: asked.once.clone(),
        lease_until: (content.settings.effect == FunctionEffect::Write)
            .then(|| now.plus_seconds(LEASE_SLACK_SECONDS + 2 * content.settings.timeout_ms / 1000)),
        created_at: now,
        ended_at: None,
    }
}

/// The error for a function that cannot be called now.
fn refusal(reason: &str, message: &str) -> Error {
    Error::new(Code::InvalidState, message).with("details", json!({ "reason": reason }))
}

/// The scopes that the key which published a version has now.
fn standing(read: &mut Read, caller: &Caller, publisher: &Publisher) -> Result<ScopeSet> {
    if publisher.env == Env::Test {
        let message = "A test key published the version, so it can be called in test mode only.";
        return Err(refusal("test_only", message));
    }
    let scopes = keys::standing_scopes(read, &publisher.lineage, caller.workspace_id())?;
    if scopes.is_empty() {
        let message =
            "The key that published the version was revoked or has expired. Publish the function again.";
        return Err(refusal("key_lost", message));
    }
    Ok(scopes)
}

/// The chain that a call starts: its first event has the id of the call, with another prefix.
fn started_by(id: &InvocationId) -> Option<Chain> {
    let random = id.as_str().strip_prefix(InvocationId::PREFIX)?;
    EventId::parse(&format!("{}{random}", EventId::PREFIX)).map(Chain::starting)
}

/// Parts secrets from other variables.
fn split(variables: BTreeMap<String, KnownVariable>) -> (Vec<(String, String)>, Map<String, Value>) {
    let (mut secrets, mut vars) = (Vec::new(), Map::new());
    for (key, KnownVariable { value, is_secret }) in variables {
        match value {
            Value::String(text) if is_secret => secrets.push((key, text)),
            _ if is_secret => {}
            value => {
                vars.insert(key, value);
            }
        }
    }
    (secrets, vars)
}
