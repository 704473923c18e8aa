//! `GET /session`: who is signed in, and the workspaces for which the session can be exchanged for a token.

use super::{VERSION_HEADER, version};
use crate::session::SignedIn;
use crate::visit::{PageResult, Visit};
use ::accounts::{account, memberships};
use ::auth::workspaces;
use model::{Code, Error, MemberRole, RequestId, Result, WorkspaceId};
use operation::RawAnswer;
use serde::Serialize;
use serde_json::json;

/// A workspace with the role of the account in it.
#[derive(Serialize)]
struct Place {
    id: WorkspaceId,
    name: String,
    role: MemberRole,
}

pub(crate) async fn answer(visit: Visit) -> PageResult {
    let id = RequestId::new(visit.web().db().now(), &*visit.web().db().random());
    let answer = match read(&visit).await {
        Ok(answer) => answer,
        Err(error) => {
            if let Some(cause) = error.cause() {
                tracing::error!(request_id = %id, %cause, "a session could not be read");
            }
            let body = json!({ "success": false, "error": error.body(), "request_id": id });
            let answer = RawAnswer::status(error.code().status()).body("application/json", body.to_string());
            if error.code() == Code::MethodNotAllowed { answer.header("allow", "GET, HEAD") } else { answer }
        }
    };
    Ok(answer
        .header("x-request-id", id.as_str())
        .header(VERSION_HEADER, version())
        .header("cross-origin-resource-policy", "same-origin"))
}

async fn read(visit: &Visit) -> Result<RawAnswer> {
    if visit.is_post() {
        return Err(Error::new(Code::MethodNotAllowed, "Only GET and HEAD are allowed."));
    }
    // Browsers leave the header out on plain connections. Other sites can read no answer in any case: it allows no origin.
    if visit.request.header("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return Err(session_required("Only pages of this service can use the session."));
    }
    let session = visit.signed_in().ok_or_else(|| session_required("Sign in."))?;
    let (is_operator, places) = of(visit, session).await?;
    let body = json!({
        "success": true,
        "data": {
            "object": "session",
            "name": session.name,
            "email": session.email,
            "operator": is_operator,
            "workspaces": places,
        },
    });
    Ok(RawAnswer::status(200).body("application/json", body.to_string()))
}

async fn of(visit: &Visit, session: &SignedIn) -> Result<(bool, Vec<Place>)> {
    let id = session.account.clone();
    let read = visit.web().db().read(move |read| {
        let is_operator = account::find(read, &id)?.operator;
        let places = memberships::of_account(read, &id)?.into_iter().map(|membership| {
            let name = workspaces::by_id(read, membership.workspace)?.name;
            Ok(Place { id: membership.workspace, name, role: membership.role })
        });
        Ok((is_operator, places.collect::<Result<Vec<_>>>()?))
    });
    read.await
}

fn session_required(message: &str) -> Error {
    Error::new(Code::SessionRequired, message)
}
