//! Operations: their declarations, the registry of all of them, the one pipeline that runs them, and the OpenAPI
//! documents that are made from them.
//!
//! The crate does not depend on actix. An interface (REST or MCP) creates a [`Head`], calls [`Pipeline::admit`], and
//! then passes the body.

mod answers;
mod batched;
mod calls;
mod cause_header;
mod declaration;
mod gates;
mod group;
mod inputs;
mod log;
mod metrics;
mod mount;
mod openapi;
mod raw_route;
mod registry;
pub mod request_hours;
mod resources;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod services;
mod transport;

pub use ::auth::Audience;
pub use ::auth::roles::Permission;
pub use answers::answer::{Answer, Created, Deleted, Json, Reply, ReplyBody, Rows, With};
pub use answers::disposition::Disposition;
pub use answers::json_rpc::JsonRpc;
pub use answers::lists::{CursorList, Nothing, OffsetList, OptInList, PageList, Pagination};
pub use batched::{Alone, BatchedCall, Together, WaitingCalls};
pub use calls::embedded::OperationInput;
pub use calls::local::{LocalAnswer, LocalCall, LocalCalls};
pub use cause_header::CauseHeader;
pub use declaration::describe::Describe;
pub use declaration::events::EventType;
pub use declaration::examples::{sample, tidy as tidy_examples};
pub use declaration::meta::Deprecated;
pub use declaration::meta::{Meta, Method, Paging, RecentSignIn};
pub use gates::Gate;
pub use group::{Declarations, FOUNDATION, Group, Parts};
pub use inputs::arriving::{BodyChunks, StreamedBody};
pub use inputs::cursor::Cursors;
pub use inputs::input::{Body, FromInput, Input, Path, Prepare, PreparedBody, Query, State};
pub use log::{LogRow, REQUEST_LOG, RequestLog};
pub use metrics::{Counts, MetricInfo, Metrics, RequestMetrics, TableGauge};
pub use mount::{Mount, Opened};
pub use openapi::{Contract, document, lacking_examples};
pub use transport::{Head, Limits, Response, ResponseBody, known_method};
// The derive macro and the trait that it implements share a name.
pub use answers::raw::{RawCreated, RawCursorList, RawJson, RawPageList, RawRows};
pub use answers::stream::{EventStream, StreamEvent};
pub use calls::pipeline::{Admitted, parse_query as query_pairs};
pub use calls::progress::Pipeline;
pub use calls::redirected::{CallBody, CallInput};
pub use calls::spans::{describe_raw, http_span, note_http, root_http_span};
pub use inputs::paging::OptIn;
pub use inputs::streamed::{FilePart, Multipart, Octets};
pub use inputs::version::{ExpectedVersion, IfMatch};
pub use model::Event;
pub use operation_macros::{Event, operation};
pub use raw_route::{Chunks, RawAnswer, RawBody, RawRequest, RawRoute};
pub use registry::{Domain, Operations, Registered, Registry};
pub use resources::{Draft, ListOrder, Resource, Update, Version};
pub use services::Services;
pub use store::{CursorPage, OffsetPage, OptInPage, PageNumber, Position};
pub use transport::body_too_large;

use model::{Caller, Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use store::{Db, Read, Tx};

/// The path prefix of all operations.
pub const BASE: &str = "/api/v1";

/// An operation of the service. `#[operation]` implements it.
pub trait Operation: Send + Sync + 'static {
    /// Returns the declaration.
    fn meta(&self) -> &'static Meta;
    /// Adds the inputs and answers to the description, for the contract and for validation.
    fn describe(&self, describe: &mut Describe);
    /// Reads the input and returns the work to run.
    ///
    /// # Errors
    /// `validation_error`, or `not_found` for text in the path that cannot be an id.
    fn bind(&self, input: &Input<'_>) -> Result<Call>;
}

/// A future that an interface awaits.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Work that needs no database.
pub type Plain = Box<dyn FnOnce(&Caller) -> Result<Reply> + Send>;
/// Work that reads the database.
pub type Reading = Box<dyn FnOnce(&mut Read, &Caller) -> Result<Reply> + Send>;
/// Work in one transaction.
pub type Writing = Box<dyn Fn(&mut Tx, &Caller) -> Result<Reply> + Send>;
/// Work that calls external systems.
pub type Speaking = Box<dyn FnOnce(Arc<Cx>) -> BoxFuture<Result<Reply>> + Send>;

/// An operation with its input, by the access that it needs.
pub enum Call {
    /// It needs no database.
    Caller(Plain),
    /// It reads the database.
    Read(Reading),
    /// It runs in one transaction, which the database may run again.
    Tx(Writing),
    /// It runs in one transaction, which may be shared with other calls of the operation.
    Batched(BatchedCall),
    /// It calls external systems.
    Cx(Speaking),
}

/// The context of an operation that calls external systems. It begins its own transactions, and none of them is held
/// across an `.await`.
pub struct Cx {
    /// The database.
    pub db: Db,
    /// The caller.
    pub caller: Caller,
    /// The right to execute, for a request with an `Idempotency-Key`.
    pub claim: Option<auth::idempotency::Claim>,
    answered: AtomicBool,
    energy: AtomicI64,
}

impl Cx {
    /// Creates a context without a claim, for callers that are not requests.
    pub fn new(db: Db, caller: Caller) -> Self {
        Self { db, caller, claim: None, answered: AtomicBool::new(false), energy: AtomicI64::new(0) }
    }

    /// Makes the change of an operation that has more to do before its answer, such as updating items.
    ///
    /// The result of `work` is stored under the request's `Idempotency-Key` in the same transaction. If the server
    /// dies before the answer, the resend that takes over receives this result, and nothing is changed twice.
    ///
    /// # Errors
    /// Those of `work`, or the database's.
    pub async fn change<T>(&self, work: impl Fn(&mut Tx) -> Result<T> + Send + 'static) -> Result<T>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        let made = self.try_change(move |tx| work(tx).map(Some)).await?;
        made.ok_or_else(|| Error::internal("a change that was made is none"))
    }

    /// Does the same as [`Self::change`] for `work` that may find that it cannot make the change now. `None` is not
    /// stored.
    ///
    /// # Errors
    /// Those of `work`, or the database's.
    pub async fn try_change<T>(
        &self,
        work: impl Fn(&mut Tx) -> Result<Option<T>> + Send + 'static,
    ) -> Result<Option<T>>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        if let Some(made) = self.made()? {
            return Ok(Some(made));
        }
        let claim = self.claim.clone();
        self.db
            .write(move |tx| {
                let made = work(tx)?;
                if let (Some(made), Some(claim)) = (&made, &claim) {
                    auth::idempotency::attach(
                        tx,
                        claim,
                        &serde_json::to_string(made).map_err(Error::internal)?,
                    )?;
                }
                Ok(made)
            })
            .await
    }

    /// Returns the result that [`Self::change`] stored under the request's `Idempotency-Key` before the server died.
    ///
    /// # Errors
    /// `internal_error` when the stored result is damaged.
    pub fn made<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let noted = self.claim.as_ref().and_then(|claim| claim.resource.as_deref());
        noted.map(serde_json::from_str).transpose().map_err(Error::internal)
    }

    /// Declares that the last transaction of the operation stored the claim's outcome.
    pub fn mark_answered(&self) {
        self.answered.store(true, Ordering::Release);
    }

    /// Records the Energy spent, for the request log.
    pub fn note_energy(&self, energy: i64) {
        self.energy.store(energy, Ordering::Relaxed);
    }
}

/// The public URL of the service, without `/api/v1` and without a slash at the end.
#[derive(Debug, Clone)]
pub struct BaseUrl(pub String);
