//! Calls of operations by an interface with one address for all of them, such as MCP.
//!
//! The request is admitted at the interface's own address ([`Pipeline::admit`]): its credential, rate and workspace are
//! checked there, once. It then becomes a request of the operation that it names: the gates about that operation, the
//! idempotency record, the quota, and one row of the request log with the operation's method and path.

use crate::Reply;
use crate::calls::gate::{Passed, expect_scope, permitted};
use crate::calls::local::address;
use crate::calls::panics::catch_panic;
use crate::calls::pipeline::{Admitted, Received, Request};
use crate::calls::progress::{Pipeline, Progress};
use crate::declaration::meta::{Meta, Method};
use crate::gates::Gate;
use crate::inputs::arriving::StreamedBody;
use crate::transport::{Response, body_too_large};
use auth::idempotency;
use bytes::Bytes;
use futures::stream;
use model::{ApiKey, Caller, Error, Result};

/// The input of an operation, taken from the arguments of a call.
#[derive(Debug, Clone, Default)]
pub struct CallInput {
    /// The values of the path's parameters, by name. `workspaceId` is always the workspace of the request.
    pub path: Vec<(&'static str, String)>,
    /// Names and values of the query.
    pub query: Vec<(String, String)>,
    /// The body.
    pub body: CallBody,
    /// The header `If-Match`.
    pub if_match: Option<String>,
    /// The header `Idempotency-Key`. Operations that change nothing ignore it.
    pub idempotency_key: Option<String>,
}

/// The body of a call.
#[derive(Debug, Clone, Default)]
pub enum CallBody {
    /// No body.
    #[default]
    None,
    /// JSON text.
    Json(String),
    /// Bytes with their media type, for operations that read their body while it arrives.
    Bytes(String, Bytes),
}

impl CallBody {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Json(text) => text.len(),
            Self::Bytes(_, bytes) => bytes.len(),
        }
    }
}

impl Meta {
    /// Checks that the scopes and the mode of a key allow the operation.
    ///
    /// # Errors
    /// `missing_scope` or `test_mode_restricted`.
    pub fn check_allowed(&self, key: &ApiKey) -> Result<()> {
        expect_scope(self, key, &mut Gate::Scope)
    }
}

impl Pipeline {
    /// Runs an admitted request as a request of another operation. `input` is the error of arguments that could not be
    /// read; it answers after the gates that come before the body.
    pub async fn run_as(
        &self,
        admitted: Admitted,
        operation: &'static Meta,
        input: Result<CallInput>,
    ) -> Response {
        let Admitted { mut progress, mut passed, .. } = admitted;
        let operations = self.registry.operations();
        let Some(place) = operations.iter().position(|one| one.meta().id == operation.id) else {
            return self.refuse(progress, Error::internal("the operation is not registered"));
        };
        passed.place = place;
        let input = input.map(|mut input| {
            input.path.retain(|(name, _)| *name != WORKSPACE);
            input.path.push((WORKSPACE, passed.caller.workspace_id().to_string()));
            input
        });
        let path = match &input {
            Ok(input) => address(operation, &input.path).unwrap_or_else(|_| operation.path.to_owned()),
            Err(_) => operation.path.to_owned(),
        };
        progress.redirect(operation, place, &path);
        progress.retiring = operations.get(place).and_then(|one| one.retiring.clone());
        let result = match Self::may_run(operation, &passed.caller, &mut progress) {
            Ok(()) => self.run_input(passed, operation, path, input, &mut progress).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(reply) => self.finish(progress, reply, None),
            Err(error) => self.refuse(progress, error),
        }
    }

    /// Answers an admitted request with text that the interface composed, such as a list of tools. It is one of the
    /// key's requests of the month.
    pub async fn answer(&self, admitted: Admitted, answer: Result<Reply>) -> Response {
        let Admitted { mut progress, passed, .. } = admitted;
        let counted = catch_panic(self.quota(&passed.caller, &mut progress)).await;
        progress.gate = Gate::Operation;
        match counted.and(answer) {
            Ok(reply) => self.finish(progress, reply, None),
            Err(error) => self.refuse(progress, error),
        }
    }

    /// Reads with an operation for a caller whose request is already counted and logged, such as the same list with
    /// shorter pages. It leaves no row in the request log.
    ///
    /// # Errors
    /// `internal_error` for an operation that changes something or answers with a stream, and errors of the operation.
    pub async fn peek(&self, caller: &Caller, operation: &'static Meta, input: CallInput) -> Result<String> {
        let place = self.registry.operations().iter().position(|one| one.meta().id == operation.id);
        let Some(place) = place.filter(|_| operation.method == Method::Get) else {
            return Err(Error::internal("only reads can be repeated"));
        };
        let mut path = input.path;
        path.push((WORKSPACE, caller.workspace_id().to_string()));
        let mut progress = self.begin_at(operation.method.as_str(), operation.path, None);
        permitted(operation, &caller.key, &caller.principal, &caller.workspace, &mut progress)?;
        let request = Request {
            passed: Passed { caller: caller.clone(), place, path },
            query: input.query,
            address: String::new(),
            if_match: None,
            content_type: None,
            is_counted: false,
        };
        let reply = catch_panic(self.execute(request, None, Received::Whole(&[]), &mut progress)).await?;
        Ok(reply.text()?.to_owned())
    }

    fn may_run(meta: &Meta, caller: &Caller, progress: &mut Progress) -> Result<()> {
        progress.gate = Gate::Route;
        if let Some(retiring) = &progress.retiring {
            retiring.check(progress.came_at)?;
        }
        permitted(meta, &caller.key, &caller.principal, &caller.workspace, progress)
    }

    async fn run_input(
        &self,
        passed: Passed,
        meta: &'static Meta,
        path: String,
        input: Result<CallInput>,
        progress: &mut Progress,
    ) -> Result<Reply> {
        let input = match input {
            Ok(input) if input.body.len() > meta.body_limit() => Err(body_too_large(meta.body_limit())),
            Ok(input) if input.path.iter().any(|(_, value)| value.contains('\0')) => {
                Err(Error::invalid("arguments", "must not contain the NUL character"))
            }
            other => other,
        };
        let input = match input {
            Ok(input) => input,
            Err(error) => {
                catch_panic(self.quota(&passed.caller, progress)).await?;
                progress.gate = Gate::Body;
                return Err(error);
            }
        };
        let CallInput { path: values, query, body, if_match, idempotency_key } = input;
        let key = idempotency_key.filter(|_| meta.is_idempotent_by_key());
        let (text, streamed) = match body {
            CallBody::None => (String::new(), None),
            CallBody::Json(text) => (text, None),
            CallBody::Bytes(media_type, bytes) => {
                (String::new(), Some((media_type, stream::iter([Ok(bytes)]))))
            }
        };
        let content_type = streamed.as_ref().map(|(media_type, _)| media_type.clone());
        let streamed = streamed.map(|(media_type, chunks)| StreamedBody::new(media_type, Box::pin(chunks)));
        let received = streamed.as_ref().map_or(Received::Whole(text.as_bytes()), Received::Arriving);
        let request = Request {
            passed: Passed { path: values, ..passed },
            query,
            address: format!("{} {path}", meta.method),
            if_match,
            content_type,
            is_counted: true,
        };
        let key = key.map(|key| idempotency::parse_header(&key));
        catch_panic(self.execute(request, key, received, progress)).await
    }
}

/// The path parameter that the pipeline itself reads.
const WORKSPACE: &str = "workspaceId";
