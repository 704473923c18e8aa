//! Errors: five types, a growing table of codes, and a cause that only the log sees (specification 7).

use crate::{Timestamp, string_enum};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt;

string_enum! {
    /// The type of error. No types will be added.
    pub enum ErrorType {
        /// The API key is missing, invalid, revoked or expired.
        AuthenticationError = "authentication_error",
        /// The request is invalid, or the key lacks a scope.
        InvalidRequestError = "invalid_request_error",
        /// A limit of requests, runs or spending is reached.
        RateLimitError = "rate_limit_error",
        /// An agent or its model failed.
        AgentError = "agent_error",
        /// Any other error, such as a missing object, a conflict, or a failure of the service.
        ApiError = "api_error",
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $status:literal $text:literal;)+) => {
        /// Why a request failed. The status follows from the code, the type from both.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $variant),+ }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code as clients see it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }
        }
    };
}

codes! {
    /// No credential was sent.
    MissingApiKey = 401 "missing_api_key";
    /// The credential is not a key, or not one that exists.
    InvalidApiKey = 401 "invalid_api_key";
    /// The key was revoked.
    ApiKeyRevoked = 401 "api_key_revoked";
    /// The key's last day has passed.
    ApiKeyExpired = 401 "api_key_expired";
    /// The request needs the cookie of a session that is open.
    SessionRequired = 401 "session_required";
    /// Something in the request is wrong; `param` says where.
    ValidationError = 400 "validation_error";
    /// The same `Idempotency-Key` came with another request.
    IdempotencyKeyReused = 400 "idempotency_key_reused";
    /// The service may not fetch from the URL.
    UrlNotAllowed = 400 "url_not_allowed";
    /// What the URL names could not be fetched.
    FetchFailed = 400 "fetch_failed";
    /// The operation needs an `Idempotency-Key`.
    IdempotencyKeyRequired = 400 "idempotency_key_required";
    /// A partner key did not say which client it operates.
    WorkspaceRequired = 400 "workspace_required";
    /// A received request does not prove who sent it.
    InvalidSignature = 400 "invalid_signature";
    /// The query would have to look at too many rows.
    QueryTooExpensive = 400 "query_too_expensive";
    /// The values do not fit the message template.
    TemplateParamsMismatch = 400 "template_params_mismatch";
    /// A message has more buttons than the network allows.
    TooManyButtons = 400 "too_many_buttons";
    /// A text names a variable that does not exist.
    UnknownVariable = 400 "unknown_variable";
    /// No contact fits the audience.
    EmptyAudience = 400 "empty_audience";
    /// The workspace has no Energy.
    EnergyDepleted = 402 "energy_depleted";
    /// The key lacks the scope in `param`.
    MissingScope = 403 "missing_scope";
    /// The operation needs a sign-in that is younger than ten minutes.
    ReauthenticationRequired = 403 "reauthentication_required";
    /// The account is no member of the workspace, or there is no such workspace.
    NotAMember = 403 "not_a_member";
    /// A test key used a scope with effects outside.
    TestModeRestricted = 403 "test_mode_restricted";
    /// Only whoever wrote it may change it.
    NotAuthor = 403 "not_author";
    /// The account is cut.
    WorkspaceBlocked = 403 "workspace_blocked";
    /// There is nothing at this address.
    RouteNotFound = 404 "route_not_found";
    /// The object does not exist in this workspace.
    NotFound = 404 "not_found";
    /// The workspace does not exist for this key.
    WorkspaceNotFound = 404 "workspace_not_found";
    /// The channel has no such message template in this language.
    TemplateNotFound = 404 "template_not_found";
    /// The address exists, the method does not.
    MethodNotAllowed = 405 "method_not_allowed";
    /// The object is in a state that forbids this.
    InvalidState = 409 "invalid_state";
    /// A value that must be unique is taken.
    DuplicateValue = 409 "duplicate_value";
    /// The object was changed meanwhile.
    VersionConflict = 409 "version_conflict";
    /// Something else still uses the object.
    ResourceInUse = 409 "resource_in_use";
    /// Something refers to the file.
    FileInUse = 409 "file_in_use";
    /// Parts of the upload are missing, or are not those that were announced.
    UploadIncomplete = 409 "upload_incomplete";
    /// The view names fields or options that are gone.
    ViewInvalid = 409 "view_invalid";
    /// What was given fits several objects.
    AmbiguousMatch = 409 "ambiguous_match";
    /// The two objects are linked already.
    LinkExists = 409 "link_exists";
    /// Something still uses the field.
    FieldInUse = 409 "field_in_use";
    /// Something still uses the variable.
    VariableInUse = 409 "variable_in_use";
    /// The task waits for others that are open.
    TaskBlocked = 409 "task_blocked";
    /// The item is locked.
    ItemLocked = 409 "item_locked";
    /// The contact cannot be reached over any channel.
    NoChannel = 409 "no_channel";
    /// The channel is not connected.
    ChannelDisconnected = 409 "channel_disconnected";
    /// More than 24 hours have passed since the contact's last message.
    WindowClosed = 409 "window_closed";
    /// The network has not approved the message template.
    TemplateNotApproved = 409 "template_not_approved";
    /// The contact wants no such messages.
    RecipientOptedOut = 409 "recipient_opted_out";
    /// The contact is blocked.
    ContactBlocked = 409 "contact_blocked";
    /// A ceiling on the number of objects is reached.
    LimitReached = 409 "limit_reached";
    /// The first request with this `Idempotency-Key` is still running.
    IdempotencyInProgress = 409 "idempotency_in_progress";
    /// The agent is switched off.
    AgentInactive = 409 "agent_inactive";
    /// The workspace has no default agent.
    AgentNotConfigured = 409 "agent_not_configured";
    /// The service has no model for the agent's tier.
    ModelNotConfigured = 409 "model_not_configured";
    /// The agent was never published.
    NotPublished = 409 "not_published";
    /// Another run holds the conversation.
    ConversationBusy = 409 "conversation_busy";
    /// A secret is rotated while the last rotation is still going on.
    RotationInProgress = 409 "rotation_in_progress";
    /// The place to go on from is no longer kept.
    CursorExpired = 410 "cursor_expired";
    /// The time for an answer is over.
    ApprovalExpired = 410 "approval_expired";
    /// The link works once, and was used.
    LinkUsed = 410 "link_used";
    /// What the link was about is over.
    LinkExpired = 410 "link_expired";
    /// The file was deleted.
    FileDeleted = 410 "file_deleted";
    /// The endpoint was retired.
    EndpointRetired = 410 "endpoint_retired";
    /// The request is larger than the limit.
    PayloadTooLarge = 413 "payload_too_large";
    /// The file is larger than the limit.
    FileTooLarge = 413 "file_too_large";
    /// The package of a skill is larger than the limit, or is packed too tightly.
    PackageTooLarge = 413 "package_too_large";
    /// The body is not `application/json`.
    UnsupportedMediaType = 415 "unsupported_media_type";
    /// Too many requests in this minute.
    RateLimited = 429 "rate_limited";
    /// The month's requests are used up.
    QuotaExceeded = 429 "quota_exceeded";
    /// The day's test runs are used up.
    TestRunDailyCap = 429 "test_run_daily_cap";
    /// The key's Energy budget is used up.
    BudgetExceeded = 429 "budget_exceeded";
    /// Too many runs at once.
    ConcurrencyLimited = 429 "concurrency_limited";
    /// The service failed.
    InternalError = 500 "internal_error";
    /// The agent failed.
    AgentFailed = 502 "agent_failed";
    /// The flow that was to answer failed.
    FlowFailed = 502 "flow_failed";
    /// No model answered.
    ModelUnavailable = 502 "model_unavailable";
    /// The service is overloaded or stopping.
    ServiceUnavailable = 503 "service_unavailable";
    /// The flow that is to answer cannot be started now.
    FlowUnavailable = 503 "flow_unavailable";
    /// There is no room on a disk.
    StorageFull = 503 "storage_full";
    /// The agent took too long.
    AgentTimeout = 504 "agent_timeout";
}

impl Code {
    /// The type (decision 7).
    pub const fn error_type(self) -> ErrorType {
        match (self, self.status()) {
            (Self::MissingScope, _) | (_, 400) => ErrorType::InvalidRequestError,
            (_, 401) => ErrorType::AuthenticationError,
            (_, 429) => ErrorType::RateLimitError,
            (_, 502 | 504) => ErrorType::AgentError,
            _ => ErrorType::ApiError,
        }
    }
}

/// One of several things that are wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// The dotted path.
    pub param: String,
    /// What is wrong there.
    pub message: String,
    /// The same for machines, in snake case, such as `unknown_option`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
}

impl FieldError {
    /// `message` says what is wrong with `param`, as in "must not be blank".
    pub fn new(param: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { param: param.into(), message: message.to_string(), code: None }
    }

    /// What is wrong, with the name of where. A message that is a sentence of its own, and no rule, follows a colon.
    fn sentence(&self) -> String {
        let colon = if self.message.starts_with(char::is_uppercase) { ":" } else { "" };
        format!("`{}`{colon} {}", self.param, self.message)
    }

    /// Adds the word for machines.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }
}

/// The result of anything that a caller may have to be told about.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The longest wait that `Retry-After` may ask for, in seconds.
pub const LONGEST_RETRY_AFTER: i64 = 3_600;

/// The wait that `Retry-After` asks for when a disk is full, in seconds.
const STORAGE_FULL_RETRY_AFTER: i64 = 30;

/// Why a request failed: what the caller is told, and the cause, which only the log sees.
///
/// Errors of the database and of the operating system become `internal_error` through `?`, or `storage_full` if a disk is full;
/// all others are made by the constructors. So nothing that a caller sent can become a 500 by a `?`:
///
/// ```compile_fail
/// fn read(text: &str) -> model::Result<i64> {
///     Ok(text.parse::<i64>()?)
/// }
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    code: Code,
    message: String,
    param: Option<String>,
    errors: Vec<FieldError>,
    extra: Map<String, Value>,
    retry_after: Option<i64>,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error with a message for the caller.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code,
            message: message.into(),
            param: None,
            errors: Vec::new(),
            extra: Map::new(),
            retry_after: None,
            cause: None,
        }))
    }

    /// 400 `validation_error`: `param` and what is wrong with it, as in "must not be blank".
    pub fn invalid(param: impl Into<String>, rule: impl fmt::Display) -> Self {
        let param = param.into();
        Self::new(Code::ValidationError, format!("`{param}` {rule}")).param(param)
    }

    /// 400 `validation_error` for all of `errors`; the first is mirrored in `param`. `None` where there are none. A
    /// single one is listed too where it has a code, which stands nowhere else.
    pub fn all_invalid(errors: Vec<FieldError>) -> Option<Self> {
        let first = errors.first()?;
        let is_reported_in_full = errors.len() == 1 && first.code.is_none();
        let mut error = Self::new(Code::ValidationError, first.sentence()).param(&first.param);
        if !is_reported_in_full {
            error.0.errors = errors;
        }
        Some(error)
    }

    /// 404 `not_found` for a kind of object: the same for ids that never were and ids of other workspaces.
    pub fn not_found(kind: &str) -> Self {
        Self::new(Code::NotFound, format!("The {kind} does not exist in this workspace."))
    }

    /// 409 `duplicate_value`: what `param` holds must be unique, and `existing_id` is the id of the object that has it.
    pub fn duplicate(
        param: impl Into<String>,
        message: impl Into<String>,
        existing_id: impl Serialize,
    ) -> Self {
        let details = json!({ "existing_id": serde_json::to_value(existing_id).unwrap_or_default() });
        Self::new(Code::DuplicateValue, message).param(param).with("details", details)
    }

    /// 500 `internal_error` with a cause for the log.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let mut error = Self::new(
            Code::InternalError,
            "An internal error occurred. Contact support with the request id.",
        );
        error.0.cause = Some(cause.into());
        error
    }

    /// 503 `storage_full` with a cause for the log. A disk has no room for what the request writes.
    pub fn storage_full(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let message = "The service has no room to store this. Nothing was changed.";
        Self::new(Code::StorageFull, message).retry_after(STORAGE_FULL_RETRY_AFTER).caused_by(cause)
    }

    /// Names the part of the request that it is about, also where the message begins with another name of it.
    #[must_use]
    pub fn param(mut self, param: impl Into<String>) -> Self {
        let param = param.into();
        if let Some(rule) = self.rule() {
            self.0.message = format!("`{param}` {rule}");
        }
        self.0.param = Some(param);
        self
    }

    /// The error of what is at `path` in the request: all that it names is below that. One that names nothing stays as it is.
    #[must_use]
    pub fn below(mut self, path: &str) -> Self {
        for part in &mut self.0.errors {
            part.param = format!("{path}.{}", part.param);
        }
        match self.0.param.as_ref().map(|param| format!("{path}.{param}")) {
            Some(param) => self.param(param),
            None => self,
        }
    }

    /// What is wrong with the part of the request that the message begins with.
    fn rule(&self) -> Option<&str> {
        let param = self.0.param.as_deref()?;
        self.0.message.strip_prefix('`')?.strip_prefix(param)?.strip_prefix("` ")
    }

    /// Adds a field to the error object, such as `recharge_url` or `details`.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.0.extra.insert(field.to_owned(), value.into());
        self
    }

    /// Adds the cause, for the log.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Says after how many seconds a retry makes sense (decision 36).
    ///
    /// Clients sleep for as long as `Retry-After` says, so a wait of more than [`LONGEST_RETRY_AFTER`] is left out. What
    /// lasts until the next day or month says so by [`Error::resets_at`].
    #[must_use]
    pub fn retry_after(mut self, seconds: i64) -> Self {
        self.0.retry_after = Some(seconds.max(1)).filter(|seconds| *seconds <= LONGEST_RETRY_AFTER);
        self
    }

    /// Says in `details` when a limit of a day or a month begins anew. Nobody is told to wait for it.
    #[must_use]
    pub fn resets_at(self, at: Timestamp) -> Self {
        self.with("details", json!({ "resets_at": at }))
    }

    /// What is wrong, part by part: all that were listed, or the one thing that there is.
    pub fn parts(&self) -> Vec<FieldError> {
        let Inner { code, message, param, errors, .. } = &*self.0;
        if !errors.is_empty() {
            return errors.clone();
        }
        let param = param.clone().unwrap_or_default();
        let message = self.rule().unwrap_or(message).to_owned();
        // What is invalid as such has no word that says more.
        vec![FieldError {
            param,
            message,
            code: Some(*code).filter(|code| *code != Code::ValidationError).map(Code::as_str),
        }]
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The sentence for the caller.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The dotted path it is about.
    pub fn param_name(&self) -> Option<&str> {
        self.0.param.as_deref()
    }

    /// What is wrong, one by one; empty where the message says all.
    pub fn errors(&self) -> &[FieldError] {
        &self.0.errors
    }

    /// Seconds for `Retry-After`.
    pub fn retry_after_seconds(&self) -> Option<i64> {
        self.0.retry_after
    }

    /// The cause, for the log and for code that retries.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.0.cause.as_deref()
    }

    /// The `error` object of the envelope.
    pub fn body(&self) -> Value {
        let inner = &self.0;
        let mut body = Map::new();
        body.insert("type".into(), serde_json::to_value(inner.code.error_type()).unwrap_or_default());
        body.insert("code".into(), inner.code.as_str().into());
        body.insert("message".into(), inner.message.clone().into());
        if let Some(param) = &inner.param {
            body.insert("param".into(), param.clone().into());
        }
        if !inner.errors.is_empty() {
            body.insert("errors".into(), serde_json::to_value(&inner.errors).unwrap_or_default());
        }
        for (field, value) in &inner.extra {
            body.insert(field.clone(), value.clone());
        }
        Value::Object(body)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.as_str(), self.0.message)?;
        if let Some(param) = &self.0.param {
            write!(f, " (param {param})")?;
        }
        if let Some(cause) = &self.0.cause {
            write!(f, "; cause: {cause:?}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_from_codes() {
        for code in Code::ALL {
            let expected = match code.status() {
                _ if *code == Code::MissingScope => ErrorType::InvalidRequestError,
                400 => ErrorType::InvalidRequestError,
                401 => ErrorType::AuthenticationError,
                429 => ErrorType::RateLimitError,
                502 | 504 => ErrorType::AgentError,
                _ => ErrorType::ApiError,
            };
            assert_eq!(code.error_type(), expected, "{code:?}");
        }
    }

    #[test]
    fn a_cause_never_shows() {
        let error = Error::internal("password=hunter2");
        assert!(!error.body().to_string().contains("hunter2"));
        assert!(format!("{error:?}").contains("hunter2"));
    }

    #[test]
    fn only_a_wait_of_up_to_an_hour_is_reported() {
        let wait =
            |seconds| Error::new(Code::RateLimited, "Wait.").retry_after(seconds).retry_after_seconds();
        assert_eq!([wait(-5), wait(0), wait(3_600)], [Some(1), Some(1), Some(3_600)]);
        assert_eq!([wait(3_601), wait(i64::MAX)], [None, None]);
        let error = Error::new(Code::QuotaExceeded, "Over.").resets_at(Timestamp::from_millis(0));
        assert_eq!(error.body()["details"]["resets_at"], "1970-01-01T00:00:00.000Z");
        assert_eq!(error.retry_after_seconds(), None);
    }

    #[test]
    fn several_errors_mirror_the_first() {
        let errors = ["a", "b"].map(|param| FieldError::new(param, "must be set"));
        let body = Error::all_invalid(errors.to_vec()).unwrap().body();
        assert_eq!(body["param"], "a");
        assert_eq!(body["errors"].as_array().unwrap().len(), 2);
        assert!(Error::all_invalid(Vec::new()).is_none());
    }

    #[test]
    fn what_is_below_a_path_is_named_so_everywhere() {
        let plain = Error::invalid("id", "must be positive").below("assignee");
        assert_eq!(
            (plain.message(), plain.param_name()),
            ("`assignee.id` must be positive", Some("assignee.id"))
        );
        let [part] = plain.parts().try_into().unwrap();
        assert_eq!(part, FieldError::new("assignee.id", "must be positive"));
        let other = Error::not_found("item").param("id").below("rows[0]");
        assert_eq!(other.message(), "The item does not exist in this workspace.");
        let all = Error::all_invalid(other.parts()).unwrap();
        assert_eq!(all.message(), "`rows[0].id`: The item does not exist in this workspace.");
        let listed =
            Error::all_invalid(["a", "b"].map(|param| FieldError::new(param, "must be set")).to_vec());
        let listed = listed.unwrap().below("data");
        assert_eq!((listed.message(), listed.param_name()), ("`data.a` must be set", Some("data.a")));
        assert_eq!(
            listed.errors().iter().map(|part| part.param.as_str()).collect::<Vec<_>>(),
            ["data.a", "data.b"]
        );
        assert_eq!(Error::not_found("item").below("data").param_name(), None);
    }

    #[test]
    fn a_single_error_is_listed_where_it_has_a_code() {
        let plain = FieldError::new("size", "is not an option");
        let body = Error::all_invalid(vec![plain.clone()]).unwrap().body();
        assert!(body.get("errors").is_none());
        let body = Error::all_invalid(vec![plain.code("unknown_option")]).unwrap().body();
        assert_eq!(body["param"], "size");
        assert_eq!(
            body["errors"],
            serde_json::json!([{ "param": "size", "message": "is not an option", "code": "unknown_option" }])
        );
    }
}
