//! Operations on the own account.

use super::model::{
    Facts, OwnAccount, OwnAccountPatch, OwnSession, OwnWorkspace, PasswordChange, PasswordChanged,
};
use accounts::{Actor, SessionTokens, SignIn, account, memberships, sessions};
use auth::roles::{self, Permission};
use auth::workspaces;
use model::{AccountId, Caller, Code, Error, MemberSession, Result, SessionId};
use operation::{Body, Cx, Deleted, Json, Path, Rows, State, operation};
use store::{Read, Tx};

/// The person who has signed in
///
/// Returns the account, the workspaces of which it is a member, and what the person may do in the workspace of the request.
#[operation(get "/dashboard/me", session = "account")]
pub fn get_own_account(read: &mut Read, caller: &Caller) -> Result<Json<OwnAccount>> {
    let facts = facts(read, &caller.member()?.account)?;
    shown(facts, caller).map(Json)
}

/// Change the own name and language
///
/// Changes what is given. The name is that of the account; the names by which the teams of workspaces know the person stay.
#[operation(patch "/dashboard/me", session = "account", when_blocked)]
pub fn update_own_account(
    tx: &mut Tx,
    caller: &Caller,
    Body(patch): Body<OwnAccountPatch>,
) -> Result<Json<OwnAccount>> {
    let (id, by) = (caller.member()?.account.clone(), Actor::of(caller)?);
    account::set_profile(tx, &id, patch.name.as_deref(), patch.locale.as_deref(), &by)?;
    let facts = facts(tx, &id)?;
    shown(facts, caller).map(Json)
}

/// Change the own password
///
/// Needs the current password. All sessions and links of the account end, also the session of this request: sign in with the
/// new password.
#[operation(post "/dashboard/me/password", session = "account", when_blocked)]
pub async fn change_own_password(
    cx: &Cx,
    Body(change): Body<PasswordChange>,
    sign_in: State<SignIn>,
    tokens: State<SessionTokens>,
) -> Result<Json<PasswordChanged>> {
    let session = &cx.caller.member()?.session;
    let (current, new) = (change.current_password, change.new_password);
    let changed = sign_in.0.change_password_and_sign_out(session, current, new, None).await;
    changed.map_err(named)?;
    tokens.0.forget();
    Ok(Json(PasswordChanged { object: "password_change", signed_out: true }))
}

/// Names the field of the request that an error of the password is about. A rule about the new one begins with the name of
/// the field of the form.
fn named(error: Error) -> Error {
    if error.code() != Code::ValidationError {
        return error;
    }
    match error.message().strip_prefix("`password` ") {
        Some(rule) => Error::invalid("new_password", rule.trim_end_matches('.')),
        None => Error::new(Code::ValidationError, "The current password is wrong.").param("current_password"),
    }
}

/// The browsers in which the person is signed in
///
/// Lists the open sessions of the account, the one that was last used first.
#[operation(get "/dashboard/me/sessions", session = "account")]
pub fn list_own_sessions(read: &mut Read, caller: &Caller) -> Result<Rows<OwnSession>> {
    let own = caller.member()?;
    let open = sessions::of_account(read, &own.account)?;
    Ok(Rows(open.into_iter().map(|session| OwnSession::of(session, &own.session)).collect()))
}

/// Sign a browser out
///
/// Ends a session of the account. Its tokens stop working within 10 seconds.
#[operation(delete "/dashboard/me/sessions/{sessionId}", session = "account", when_blocked)]
pub fn end_own_session(
    tx: &mut Tx,
    caller: &Caller,
    Path(session_id): Path<SessionId>,
) -> Result<Deleted<OwnSession>> {
    sessions::revoke(tx, &caller.member()?.account, &session_id)?;
    Ok(Deleted::of("session", session_id))
}

fn facts(read: &mut Read, id: &AccountId) -> Result<Facts> {
    let account = account::find(read, id)?;
    let mut own = Vec::new();
    for membership in memberships::of_account(read, id)? {
        let workspace = workspaces::by_id(read, membership.workspace)?;
        own.push(OwnWorkspace {
            id: workspace.id,
            name: workspace.name,
            slug: workspace.slug,
            role: membership.role,
        });
    }
    Ok(Facts { account, workspaces: own })
}

fn shown(Facts { account, workspaces }: Facts, caller: &Caller) -> Result<OwnAccount> {
    let member = caller.member()?;
    let has = |permission: &Permission| roles::expect(member, *permission).is_ok();
    Ok(OwnAccount {
        id: account.id,
        object: "account",
        email: account.email,
        name: account.name,
        locale: account.locale,
        is_operator: account.operator,
        member_id: member.member,
        role: member.role,
        permissions: Permission::ALL.into_iter().filter(has).collect(),
        scopes: roles::scopes(member.role).iter().map(model::Scope::as_str).collect(),
        workspace_id: caller.workspace_id(),
        env: caller.key.env,
        blocked_reason: caller.workspace.blocked_reason.clone(),
        session_id: member.session.clone(),
        recent_until: member.authenticated_at.plus_seconds(MemberSession::RECENT_SECONDS),
        workspaces,
        password_changed_at: account.password_changed_at,
        created_at: account.created_at,
    })
}
