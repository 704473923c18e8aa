//! Calls of operations from within the service: an agent's tool does what a request would do, through the same gates.
//!
//! The caller is known, so nothing is asked of a credential, and the call counts neither against the key's rate nor
//! against its month: the request that led to it did.

use crate::calls::gate::{Passed, permitted};
use crate::calls::panics::catch_panic;
use crate::calls::pipeline::{Received, Request};
use crate::calls::progress::{Pipeline, Progress};
use crate::declaration::meta::Meta;
use crate::gates::Gate;
use crate::registry::Registered;
use crate::transport::{Response, ResponseBody};
use model::{Caller, Error, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::sync::{Arc, OnceLock, Weak};

/// A call of an operation.
#[derive(Debug, Clone)]
pub struct LocalCall {
    /// Who calls, with no more scopes than the call may use.
    pub caller: Caller,
    /// The id of the operation, such as `getContact`.
    pub operation: &'static str,
    /// The values of the path's parameters, by name.
    pub path: Vec<(&'static str, String)>,
    /// Names and values of the query.
    pub query: Vec<(String, String)>,
    /// The JSON body.
    pub body: Option<Value>,
    /// The version that what is changed must have, as in `If-Match`. A repetition may have another.
    pub if_match: Option<i64>,
    /// What makes a repetition of a change receive the first answer, as an `Idempotency-Key` does.
    pub idempotency_key: Option<String>,
}

/// What an operation answered.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The whole body.
    pub body: Value,
}

/// The operations of the service, for those who are made before the pipeline is. Cheap to clone.
#[derive(Clone, Default)]
pub struct LocalCalls(Arc<OnceLock<Weak<Pipeline>>>);

impl LocalCalls {
    /// Says which pipeline runs the calls. Only the first counts.
    pub fn connect(&self, pipeline: &Arc<Pipeline>) {
        // Weak, because the pipeline's services may hold this.
        let _ = self.0.set(Arc::downgrade(pipeline));
    }

    fn pipeline(&self) -> Result<Arc<Pipeline>> {
        let pipeline = self.0.get().and_then(Weak::upgrade);
        pipeline.ok_or_else(|| Error::internal("the pipeline is not connected"))
    }

    /// The declaration of an operation; `None` where the service does not have it.
    ///
    /// # Errors
    /// When no pipeline is connected.
    pub fn operation(&self, id: &str) -> Result<Option<&'static Meta>> {
        Ok(self.pipeline()?.registry.by_id(id).map(Registered::meta))
    }

    /// Runs a call. What the operation refuses is an answer too.
    ///
    /// # Errors
    /// `internal_error` for an operation that the service does not have, or that does not answer with JSON.
    pub async fn call(&self, call: LocalCall) -> Result<LocalAnswer> {
        LocalAnswer::of(self.pipeline()?.call_as(call).await?)
    }
}

impl LocalAnswer {
    /// Reads a response, which must not be a stream.
    pub(crate) fn of(response: Response) -> Result<Self> {
        let ResponseBody::Json(text) = response.body else {
            return Err(Error::internal("the operation answers with a stream"));
        };
        Ok(Self { status: response.status, body: serde_json::from_str(&text).map_err(Error::internal)? })
    }
}

impl Pipeline {
    async fn call_as(&self, call: LocalCall) -> Result<Response> {
        let operations = self.registry.operations();
        let place = operations.iter().position(|operation| operation.meta().id == call.operation);
        let registered = place.and_then(|place| operations.get(place));
        let (Some(place), Some(registered)) = (place, registered) else {
            return Err(Error::internal(format!("there is no operation {}", call.operation)));
        };
        let meta = registered.meta();
        if meta.session.is_some() {
            return Err(Error::internal(format!("{} is for people who have signed in", meta.id)));
        }
        let path = address(meta, &call.path)?;
        let mut progress = self.begin_at(meta.method.as_str(), &path, call.caller.trace.clone());
        progress.key = Some(call.caller.key.clone());
        progress.operation = Some(meta);
        progress.place = Some(place);
        progress.retiring.clone_from(&registered.retiring);
        let result = match self.passed(call.caller, place, call.path, &mut progress).await {
            Ok(passed) => {
                let idempotency_key = call.idempotency_key.filter(|_| meta.is_idempotent_by_key());
                let body = call.body.map(|body| body.to_string()).unwrap_or_default();
                let request = Request {
                    passed,
                    query: call.query,
                    address: format!("{} {path}", meta.method),
                    if_match: call.if_match.map(|version| version.to_string()),
                    content_type: None,
                    is_counted: false,
                };
                let body = Received::Whole(body.as_bytes());
                catch_panic(self.execute(request, idempotency_key.map(Ok), body, &mut progress)).await
            }
            Err(error) => Err(error),
        };
        Ok(match result {
            Ok(reply) => self.finish(progress, reply, None),
            Err(error) => self.refuse(progress, error),
        })
    }

    /// The gates that are about what a caller may do. Its workspace is looked up again: it may have been blocked since.
    async fn passed(
        &self,
        mut caller: Caller,
        place: usize,
        path: Vec<(&'static str, String)>,
        progress: &mut Progress,
    ) -> Result<Passed> {
        progress.gate = Gate::Route;
        if let Some(retiring) = &progress.retiring {
            retiring.check(progress.came_at)?;
        }
        progress.gate = Gate::Workspace;
        if let Some(workspace) = self.directory.workspace(caller.workspace_id()).await? {
            caller.workspace = workspace;
        }
        if let Some(meta) = progress.operation {
            permitted(meta, &caller.key, &caller.principal, &caller.workspace, progress)?;
        }
        if let Some((name, _)) = path.iter().find(|(_, value)| value.contains('\0')) {
            return Err(Error::invalid(*name, "must not contain the NUL character"));
        }
        caller.request = progress.request.clone();
        caller.trace = progress.context();
        caller.idempotency_key = None;
        Ok(Passed { caller, place, path })
    }
}

/// What clients encode in a part of a path: everything but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same in a parameter that takes the rest of the path.
const ENCODED_REST: &AsciiSet = &ENCODED.remove(b'/');

/// The path as a request would have it, for the log and for what an idempotency key is bound to.
pub(crate) fn address(meta: &Meta, values: &[(&'static str, String)]) -> Result<String> {
    let mut address = meta.path.to_owned();
    for name in meta.path_parameters() {
        let value = values.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str());
        let value = value.ok_or_else(|| Error::internal(format!("the call of {} lacks {name}", meta.id)))?;
        let value =
            utf8_percent_encode(value, if name == "path" { ENCODED_REST } else { ENCODED }).to_string();
        address = address.replace(&format!("{{{name}}}"), &value);
    }
    Ok(address)
}
