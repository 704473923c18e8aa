//! `POST /session/token`: exchanges the session for the token of five minutes with which pages use the API. The API itself
//! reads no cookie, so no other site can make a browser use it.

use crate::app::{VERSION_HEADER, version};
use crate::forms;
use crate::visit::{PageResult, Visit};
use ::accounts::{SessionTokens, memberships};
use model::{Code, Env, Error, MemberSession, RequestId, Result, WorkspaceId};
use operation::RawAnswer;
use serde::Deserialize;
use serde_json::json;

/// What a token is for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    workspace: WorkspaceId,
    env: Env,
}

pub(super) async fn answer(visit: Visit) -> PageResult {
    let id = RequestId::new(visit.web().db().now(), &*visit.web().db().random());
    let answer = match issue(&visit).await {
        Ok(answer) => answer,
        Err(error) => {
            if let Some(cause) = error.cause() {
                tracing::error!(request_id = %id, %cause, "a session could not be exchanged");
            }
            let body = json!({ "success": false, "error": error.body(), "request_id": id });
            let answer = RawAnswer::status(error.code().status()).body("application/json", body.to_string());
            if error.code() == Code::MethodNotAllowed { answer.header("allow", "POST") } else { answer }
        }
    };
    Ok(answer.header("x-request-id", id.as_str()).header(VERSION_HEADER, version()))
}

async fn issue(visit: &Visit) -> Result<RawAnswer> {
    if !visit.is_post() {
        return Err(Error::new(Code::MethodNotAllowed, "Only POST is allowed."));
    }
    if !forms::is_same_origin(visit.web().site(), &visit.request) {
        return Err(session_required("Only pages of this service can use the session."));
    }
    // Other sites cannot send this type without being asked first, and are never allowed to.
    if !forms::is_of_type(&visit.request, "application/json") {
        return Err(Error::new(Code::UnsupportedMediaType, "Send `application/json`."));
    }
    let session = visit.signed_in().ok_or_else(|| session_required("Sign in."))?;
    let wanted: Wanted = serde_json::from_slice(&visit.request.body).map_err(|_| {
        Error::invalid("body", "must be an object with `workspace`, a number, and `env`, `live` or `test`")
    })?;
    let (account, workspace) = (session.account.clone(), wanted.workspace);
    let found = visit.web().db().read(move |read| memberships::in_workspace(read, &account, workspace)).await;
    let membership = found.map_err(|error| match error.code() {
        Code::WorkspaceNotFound => Error::new(Code::NotAMember, "You are no member of this workspace."),
        _ => error,
    })?;
    let now = visit.web().db().now();
    let member = MemberSession {
        account: session.account.clone(),
        member: membership.member,
        session: session.id.clone(),
        address: visit.peer(),
        authenticated_at: session.authenticated_at,
        role: membership.role,
        // The token states no rights: each request looks them up.
        is_operator: false,
    };
    let token = visit.web().session_tokens().issue(&member, workspace, wanted.env, now)?;
    let expires_at = now.plus_seconds(SessionTokens::LIFETIME_SECONDS);
    let body = json!({ "success": true, "data": { "token": token, "expires_at": expires_at } });
    Ok(RawAnswer::status(200).body("application/json", body.to_string()))
}

fn session_required(message: &str) -> Error {
    Error::new(Code::SessionRequired, message)
}
