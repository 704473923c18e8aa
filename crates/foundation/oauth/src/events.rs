//! What is published of grants.

use model::{KeyId, MemberId, text_enum};
use operation_macros::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// An event of the authorization of an app.
#[derive(Event)]
#[event(scope = "events:read", subject = "key", id = "key_id")]
pub enum AppEvent<'a> {
    /// The authorization of an OAuth app ended, or one sign-in of the app did: it signed out, or a token was used twice.
    #[event(name = "app.authorization.revoked")]
    Revoked(AuthorizationRevoked<'a>),
}

/// The end of an authorization, or of one sign-in under it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "client_id": "https://assistant.example/client.json", "name": "Assistant" }))]
pub struct AuthorizationRevoked<'a> {
    /// The id of the key through which the app acts.
    pub key_id: &'a KeyId,
    /// The `client_id` of the app.
    pub client_id: &'a str,
    /// The name that the app gives itself.
    pub name: &'a str,
    /// The id of the member who authorized the app.
    pub authorized_by: MemberId,
    /// Why it ended.
    pub reason: RevocationReason,
    /// Whether the whole authorization ended. Otherwise one sign-in of the app did, and others continue.
    pub authorization_ended: bool,
}

text_enum! {
    /// Why an authorization or a sign-in of an app ended.
    pub enum RevocationReason {
        /// A member of the workspace or an operator revoked it.
        Revoked = "revoked",
        /// The member who authorized the app has left the team, or has a role with fewer rights.
        MemberChanged = "member_changed",
        /// The app signed out.
        SignedOut = "signed_out",
        /// A refresh token was used again, so another party may have it.
        RefreshTokenReused = "refresh_token_reused",
        /// An authorization code was used again, so another party may have it.
        CodeReused = "code_reused",
    }
}
