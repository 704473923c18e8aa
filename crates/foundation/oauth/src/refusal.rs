//! Errors of OAuth endpoints (RFC 6749, 5.2; RFC 8707, 2).

use model::string_enum;

string_enum! {
    /// The error code of an OAuth endpoint.
    #[derive(Hash)]
    pub enum RefusalCode {
        /// A parameter is missing, repeated or malformed.
        InvalidRequest = "invalid_request",
        /// The client is unknown or does not prove who it is.
        InvalidClient = "invalid_client",
        /// The code or refresh token is not valid for this client now.
        InvalidGrant = "invalid_grant",
        /// The client may not use this grant type.
        UnauthorizedClient = "unauthorized_client",
        /// The grant type is unknown.
        UnsupportedGrantType = "unsupported_grant_type",
        /// The response type is unknown.
        UnsupportedResponseType = "unsupported_response_type",
        /// A scope is unknown or was not granted.
        InvalidScope = "invalid_scope",
        /// The resource is not one of this service.
        InvalidTarget = "invalid_target",
        /// The member said no.
        AccessDenied = "access_denied",
        /// The token type is unknown.
        UnsupportedTokenType = "unsupported_token_type",
        /// The service failed.
        ServerError = "server_error",
        /// The service is busy.
        TemporarilyUnavailable = "temporarily_unavailable",
    }
}

/// Why an OAuth request is refused. The description is for developers, and contains no input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: RefusalCode,
    /// The description.
    pub description: &'static str,
}

impl Refusal {
    /// Creates a refusal.
    pub fn new(code: RefusalCode, description: &'static str) -> Self {
        Self { code, description }
    }

    /// Creates an `invalid_grant`.
    pub(crate) fn grant(description: &'static str) -> Self {
        Self::new(RefusalCode::InvalidGrant, description)
    }
}
