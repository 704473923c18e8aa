//! The operation that calls a function.

use super::prepare::{Asked, Chosen};
use super::service::FunctionCalls;
use crate::history::model::{Invocation, InvocationCaller, InvocationCallerType, InvocationMode};
use crate::network::Fixture;
use model::{Env, Error, FunctionId, InvocationId, JsonText, Result, text_enum};
use operation::{Body, Cx, Json, Path, State, operation};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A call of a function.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InvokeFunction, example = json!({ "input": { "kg": 3 }, "mode": "live" }))]
pub struct Invoke {
    /// `ctx.input`: any JSON of up to 256 KB that fits the input schema; `null` if not given. A number with more digits than a
    /// program can hold is refused.
    #[schema(value_type = Value)]
    #[serde(default)]
    input: Value,
    /// The mode; if not given, `live` for live keys and `test` for test keys, which have no other.
    #[serde(default)]
    mode: Option<InvocationMode>,
    /// The number of a version, or `draft`. If not given, the published version in live mode, and the draft in test mode.
    #[serde(default)]
    version: Option<ChosenVersion>,
    /// Recorded answers to `ctx.fetch`, in test mode only.
    #[schema(max_items = 50)]
    #[serde(default)]
    fixtures: Vec<Fixture>,
    /// `ctx.idempotencyKey`; the id of the invocation if not given.
    #[schema(min_length = 1, max_length = 255)]
    #[serde(default)]
    idempotency_key: Option<String>,
}

/// The number of a version, or `draft`.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = FunctionVersionChoice)]
pub enum ChosenVersion {
    /// The number of a version.
    Number(i64),
    /// The draft.
    Draft(DraftWord),
}

text_enum! {
    /// The draft of a function.
    #[schema(as = FunctionDraft)]
    pub enum DraftWord {
        /// The draft.
        Draft = "draft",
    }
}

/// Run the function with an input and return its output and logs
///
/// Waits for the end of the call. A program that throws, runs out of time or out of memory is a 200 with `status` `failed` or
/// `timed_out` and an `error`. A live call of a version has the scopes that the function lists, as far as the key that
/// published the version still has them; drafts and tests have those that your key has. If that key was revoked, or a test key
/// published the version, a live call is a 409 `invalid_state`. With an `Idempotency-Key`, a resend after a crash does not call a function that writes again:
/// it ends as `function_interrupted`.
#[operation(post "/functions/{functionId}/invoke", scope = "functions:write")]
pub(crate) async fn invoke_function(
    cx: &Cx,
    Path(function_id): Path<FunctionId>,
    Body(invoke): Body<Invoke>,
    State(calls): State<FunctionCalls>,
) -> Result<Json<Invocation>> {
    let workspace = cx.caller.workspace_id();
    if let Some(id) = cx.made::<InvocationId>()? {
        // The server that began the call died.
        return Ok(Json(calls.interrupt(workspace, id).await?.invocation()?));
    }
    let prepared = calls.prepare(asked(cx, function_id, invoke)?).await?;
    if prepared.row.lease_until.is_some() {
        let row = prepared.row.clone();
        cx.change(move |tx| row.insert(tx).map(|_| row.id.clone())).await?;
    }
    Ok(Json(calls.make(prepared).await?.invocation()?))
}

fn asked(cx: &Cx, function: FunctionId, invoke: Invoke) -> Result<Asked> {
    let mode = invoke.mode.unwrap_or(match cx.caller.key.env {
        Env::Live => InvocationMode::Live,
        Env::Test => InvocationMode::Test,
    });
    if mode == InvocationMode::Live && !invoke.fixtures.is_empty() {
        return Err(Error::invalid("fixtures", "must be empty in live mode"));
    }
    let chosen = match (invoke.version, mode) {
        (Some(ChosenVersion::Number(number)), _) => Chosen::Version(number),
        (Some(ChosenVersion::Draft(_)), _) | (None, InvocationMode::Test) => Chosen::Draft,
        (None, InvocationMode::Live) => Chosen::Published,
    };
    Ok(Asked {
        caller: cx.caller.clone(),
        function,
        chosen,
        mode,
        input: JsonText::of(&invoke.input),
        hidden: Vec::new(),
        fixtures: invoke.fixtures,
        by: InvocationCaller {
            r#type: InvocationCallerType::Request,
            key_id: cx.caller.key.id.to_string(),
            request_id: cx.caller.request.to_string(),
            run_id: None,
            step_id: None,
            automation_id: None,
            contact_id: None,
        },
        run: None,
        contact: None,
        once: None,
        idempotency_key: invoke.idempotency_key,
        patience: None,
    })
}
