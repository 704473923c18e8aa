//! The guard: every check before an operation's input is looked at, in the order of decision 11.

use crate::calls::progress::{Pipeline, Progress};
use crate::cause_header::CauseHeader;
use crate::declaration::meta::{Meta, RecentSignIn};
use crate::gates::Gate;
use crate::registry::{Found, Registered};
use crate::transport::Head;
use accounts::SessionTokens;
use auth::keys::{DEMO_RATE_LIMIT_RPM, KeyKind, StoredKey};
use auth::{Identity, KeySecret, Window, roles};
use model::{
    ApiKey, Caller, Chain, Code, Env, Error, KeyOwner, MemberSession, Principal, Result, Timestamp,
    Workspace, WorkspaceId,
};
use oauth::AccessTokens;
use std::sync::Arc;

/// Behind the guard: who asks, and for which operation.
pub(crate) struct Passed {
    pub(crate) caller: Caller,
    pub(crate) place: usize,
    pub(crate) path: Vec<(&'static str, String)>,
}

impl Pipeline {
    /// Gates 1 to 9. Nothing of the body is looked at.
    pub(crate) async fn guard(&self, head: &Head<'_>, progress: &mut Progress) -> Result<Passed> {
        progress.gate = Gate::Credential;
        let Identity { key: stored, principal, scopes } = self.credential(head, progress).await?;
        let mut key = stored.key.clone();
        key.scopes = scopes.unwrap_or(key.scopes);
        let key = Arc::new(key);
        progress.key = Some(key.clone());
        if let Principal::Member(member) = &principal {
            progress.session = Some(member.session.clone());
        }

        progress.gate = Gate::Rate;
        let route = self.registry.find(head.method, head.path);
        let path = match &route {
            Found::Operation(operation, _, values) => decoded(operation, values),
            Found::OtherMethods(_) | Found::Nothing => Some(Vec::new()),
        };
        // The ceiling depends on the plan, so the workspace is looked up before the rate is counted. Its own gate
        // answers later.
        let workspace = self.workspace(head, &stored, path.as_deref().unwrap_or_default()).await;
        self.rate(head, &stored, &principal, workspace.as_ref().ok(), progress).await?;

        progress.gate = Gate::Route;
        let (operation, place) = match route {
            Found::Operation(operation, place, _) => (operation, place),
            Found::OtherMethods(methods) => {
                progress.allow =
                    Some(methods.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(", "));
                return Err(Error::new(Code::MethodNotAllowed, "The method is not allowed for this path."));
            }
            Found::Nothing => {
                return Err(Error::new(Code::RouteNotFound, "There is no operation with this path."));
            }
        };
        progress.operation = Some(operation.meta());
        progress.place = Some(place);
        if let Some(retiring) = &operation.retiring {
            retiring.check(progress.came_at)?;
        }
        let path = path.ok_or_else(|| Error::new(Code::RouteNotFound, "The path is not valid UTF-8."))?;
        expect_session(operation.meta(), &principal, progress)?;

        progress.gate = Gate::Workspace;
        let workspace = workspace?;
        permitted(operation.meta(), &key, &principal, &workspace, progress)?;
        // The `Idempotency-Key` is looked at by its own gate.
        let caller = Caller {
            request: progress.request.clone(),
            key,
            principal,
            workspace,
            idempotency_key: None,
            trace: progress.context(),
            actor: stored.actor(),
            answering: None,
            chain: self.chain_in_header(head, progress.came_at),
        };
        Ok(Passed { caller, place, path })
    }

    async fn credential(&self, head: &Head<'_>, progress: &mut Progress) -> Result<Identity> {
        let result = self.identity(head, progress).await;
        if let Err(error) = &result
            && error.code().status() == 401
        {
            // Whoever has no key is counted by address: guessing keys must not be free.
            let limit = self.limits.anonymous_rpm;
            let window = self.rates.count_address(ADDRESS, head.peer, limit, progress.came_at).await;
            progress.window = Some(window);
            if window.exceeded {
                return Err(too_many_without_key(window));
            }
        }
        result
    }

    async fn identity(&self, head: &Head<'_>, progress: &mut Progress) -> Result<Identity> {
        let now = progress.came_at;
        let missing = || Error::new(Code::MissingApiKey, "Send `Authorization: Bearer <API key>`.");
        let unknown = || Error::new(Code::InvalidApiKey, "The API key is not valid.");
        let header = head.header("authorization").ok_or_else(missing)?.map_err(|_| unknown())?;
        let (scheme, secret) = header.split_once(' ').unwrap_or((header, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(missing());
        }
        let secret = secret.trim();
        let identity = if SessionTokens::is_token(secret) {
            self.session_tokens.identify(secret, head.peer, now).await?.ok_or_else(unknown)?
        } else if AccessTokens::is_token(secret) {
            let token = AccessTokens::parse(secret).ok_or_else(unknown)?;
            self.refuse_guesses(self.access_tokens.was_token(token), head, progress)?;
            progress.access_token = Some(token);
            self.access_tokens.identify(token, head.audience, now).await?.ok_or_else(unknown)?
        } else {
            Identity::of_key(self.key_of_secret(secret, head, progress).await?)
        };
        identity.key.check_usable(now)?;
        Ok(identity)
    }

    async fn key_of_secret(
        &self,
        secret: &str,
        head: &Head<'_>,
        progress: &mut Progress,
    ) -> Result<Arc<StoredKey>> {
        let unknown = || Error::new(Code::InvalidApiKey, "The API key is not valid.");
        // A wrong checksum and an unknown key look the same.
        let hash = KeySecret::parse(secret).ok_or_else(unknown)?.hash();
        self.refuse_guesses(self.directory.was_key(hash), head, progress)?;
        self.directory.key(hash).await?.ok_or_else(unknown)
    }

    /// An address that guesses must not keep the database busy. A secret that was seen before is let through to be looked
    /// up: behind a proxy it has the same address as whoever guesses.
    fn refuse_guesses(&self, was_seen: bool, head: &Head<'_>, progress: &mut Progress) -> Result<()> {
        let limit = self.limits.anonymous_rpm;
        if !was_seen && let Some(window) = self.rates.used_up(ADDRESS, head.peer, limit, progress.came_at) {
            progress.window = Some(window);
            return Err(too_many_without_key(window));
        }
        Ok(())
    }

    async fn rate(
        &self,
        head: &Head<'_>,
        stored: &StoredKey,
        principal: &Principal,
        workspace: Option<&Arc<Workspace>>,
        progress: &mut Progress,
    ) -> Result<()> {
        if let Principal::Member(member) = principal {
            let (most, own) = (MemberSession::RATE_LIMIT_RPM, stored.key.rate_limit_rpm);
            // Both keys of a member share a window. The keys of all other windows are ids of keys and addresses.
            let window = format!("member {}", member.member);
            return self.count(&window, own.map_or(most, |own| own.min(most)), progress).await;
        }
        if stored.kind == KeyKind::Demo {
            return self.count_visitor(head, progress).await;
        }
        let plan = workspace.and_then(|workspace| workspace.plan.rate_limit_rpm);
        let limit = match (stored.key.rate_limit_rpm, plan) {
            (Some(key), Some(plan)) => key.min(plan),
            (Some(one), None) | (None, Some(one)) => one,
            // A plan may have no cap; having no plan is no plan without a cap.
            (None, None) if workspace.is_some_and(|workspace| !workspace.plan.is_none()) => return Ok(()),
            (None, None) => self.limits.default_rpm,
        };
        self.count(stored.key.lineage.as_str(), limit, progress).await
    }

    /// Counts a request with the demo key, which all visitors share, in the window of its address.
    async fn count_visitor(&self, head: &Head<'_>, progress: &mut Progress) -> Result<()> {
        let limit = DEMO_RATE_LIMIT_RPM;
        let window = self.rates.count_address(VISITOR, head.peer, limit, progress.came_at).await;
        self.within(window, limit, progress)
    }

    /// Counts a request in a window.
    async fn count(&self, key: &str, limit: i64, progress: &mut Progress) -> Result<()> {
        let window = self.rates.count(key, limit, progress.came_at).await;
        self.within(window, limit, progress)
    }

    fn within(&self, window: Window, limit: i64, progress: &mut Progress) -> Result<()> {
        progress.window = Some(window);
        if window.exceeded {
            return Err(Error::new(Code::RateLimited, format!("More than {limit} requests in a minute."))
                .retry_after(window.reset_seconds));
        }
        Ok(())
    }

    /// The workspace that the request operates (platform-billing.md C.10).
    async fn workspace(
        &self,
        head: &Head<'_>,
        stored: &StoredKey,
        path: &[(&'static str, String)],
    ) -> Result<Arc<Workspace>> {
        let in_path = path.iter().find(|(name, _)| *name == "workspaceId").map(|(_, value)| value.as_str());
        let in_path = in_path.map(|text| text.parse().map_err(|()| unknown_workspace())).transpose()?;
        let in_header = self.workspace_in_header(head).await?;
        let named = match (in_path, in_header) {
            (Some(path), Some(header)) if path != header => {
                return Err(Error::invalid("X-Svc-Workspace", "must be the workspace in the path"));
            }
            (path, header) => path.or(header),
        };
        let id = match stored.key.owner {
            KeyOwner::Workspace(own) => named
                .map_or(Ok(own), |named| if named == own { Ok(own) } else { Err(unknown_workspace()) })?,
            KeyOwner::Partner(partner) => match named.or(stored.key.default_workspace) {
                Some(id) => id,
                None => match self.directory.first_clients(partner).await?.as_slice() {
                    [only] => *only,
                    _ => {
                        let message = "Send the client workspace to operate in the header `X-Svc-Workspace`.";
                        return Err(Error::new(Code::WorkspaceRequired, message).param("X-Svc-Workspace"));
                    }
                },
            },
        };
        let workspace = self.directory.workspace(id).await?.ok_or_else(unknown_workspace)?;
        match stored.key.owner {
            KeyOwner::Partner(partner) if workspace.partner != Some(partner) => Err(unknown_workspace()),
            _ => Ok(workspace),
        }
    }

    /// The place in a chain of causes that the service itself has sent with the request.
    fn chain_in_header(&self, head: &Head<'_>, now: Timestamp) -> Option<Chain> {
        let value = head.lossy_header(CauseHeader::NAME)?;
        CauseHeader::read(&self.seal, &value, now)
    }

    async fn workspace_in_header(&self, head: &Head<'_>) -> Result<Option<WorkspaceId>> {
        let Some(value) = head.header("x-svc-workspace") else { return Ok(None) };
        let value = value.map_err(|_| unknown_workspace())?.trim();
        if value.len() > 64 {
            return Err(unknown_workspace());
        }
        match value.parse() {
            Ok(id) => Ok(Some(id)),
            Err(()) => {
                Ok(Some(self.directory.workspace_by_slug(value).await?.ok_or_else(unknown_workspace)?))
            }
        }
    }

    /// Gate 11: requests that pass it count against the month.
    pub(crate) async fn quota(&self, caller: &Caller, progress: &mut Progress) -> Result<()> {
        progress.gate = Gate::Quota;
        let (lineage, now) = (&caller.key.lineage, self.now());
        let quota = caller.monthly_quota();
        if let Some(quota) = quota
            && self.quotas.used(lineage, now).await? >= quota
        {
            return Err(over_quota(quota, now));
        }
        progress.gate = Gate::Budget;
        if let Some(cap) = caller.key.budget_cents.filter(|_| caller.key.budget_cutoff) {
            let spent = self.spending.spent_micros(lineage, now).await?;
            if spent >= cap.saturating_mul(10_000) {
                let message = "The key has used its Energy budget of this month.";
                let error = Error::new(Code::BudgetExceeded, message);
                return Err(error.resets_at(now.next_month_start()));
            }
        }
        if matches!(caller.principal, Principal::Member(_)) {
            // The quota of a plan is for programs.
            return Ok(());
        }
        progress.gate = Gate::Quota;
        let counted = self.quotas.count(lineage, caller.workspace_id(), quota, now).await?;
        // Others may have taken the last request meanwhile.
        counted.then_some(()).ok_or_else(|| over_quota(quota.unwrap_or_default(), now))
    }
}

/// Gates 6 to 9: whether a key, and who acts through it, may use an operation in a workspace now.
pub(crate) fn permitted(
    meta: &Meta,
    key: &ApiKey,
    principal: &Principal,
    workspace: &Workspace,
    progress: &mut Progress,
) -> Result<()> {
    progress.workspace = Some(workspace.id);

    progress.gate = Gate::Plan;
    // A member of a blocked workspace sees why it is, and can mend it.
    let is_open = matches!(principal, Principal::Member(_)) && meta.is_open_when_blocked();
    if let Some(reason) = workspace.blocked_reason.as_ref().filter(|_| !is_open) {
        return Err(Error::new(Code::WorkspaceBlocked, reason.clone()));
    }

    expect_session(meta, principal, progress)?;
    expect_scope(meta, key, &mut progress.gate)?;
    if let (Some(permission), Principal::Member(member)) = (meta.session, principal) {
        roles::expect(member, permission)?;
    }
    progress.gate = Gate::RecentSignIn;
    match meta.recent_sign_in {
        Some(RecentSignIn::Always) => principal.expect_recent_sign_in(progress.came_at),
        Some(RecentSignIn::Secrets) | None => Ok(()),
    }
}

/// Refuses keys and apps where the operation is for members who have signed in. Where nobody has, no other gate would make
/// sense to the caller.
fn expect_session(meta: &Meta, principal: &Principal, progress: &mut Progress) -> Result<()> {
    if meta.session.is_none() || matches!(principal, Principal::Member(_)) {
        return Ok(());
    }
    progress.gate = Gate::Credential;
    let message =
        "This operation is for members of the team who have signed in. API keys and apps cannot use it.";
    Err(Error::new(Code::SessionRequired, message))
}

/// Gates 7 and 8: whether the scopes and the mode of a key allow an operation.
pub(crate) fn expect_scope(meta: &Meta, key: &ApiKey, gate: &mut Gate) -> Result<()> {
    *gate = Gate::Scope;
    let Some(scope) = meta.scope else { return Ok(()) };
    key.expect_scope(scope)?;
    *gate = Gate::TestMode;
    if scope.is_test_restricted() && key.env != Env::Live {
        let message = format!("Test keys cannot use `{scope}`, because it has external effects.");
        return Err(Error::new(Code::TestModeRestricted, message).param(scope.as_str()));
    }
    Ok(())
}

/// The same for a workspace that does not exist and for one of others.
fn unknown_workspace() -> Error {
    Error::new(Code::WorkspaceNotFound, "The workspace does not exist, or the key has no access to it.")
}

fn over_quota(quota: i64, now: Timestamp) -> Error {
    let message = format!("The key has used its {quota} requests of this month.");
    Error::new(Code::QuotaExceeded, message).resets_at(now.next_month_start())
}

/// The door at which addresses without a valid key are counted.
const ADDRESS: &str = "ip";

/// Whose windows count requests with the demo key.
const VISITOR: &str = "visitor";

fn too_many_without_key(window: Window) -> Error {
    Error::new(Code::RateLimited, "Too many requests without a valid key from this address.")
        .retry_after(window.reset_seconds)
}

/// The path's values under the operation's names; `None` where one is not UTF-8.
fn decoded(operation: &Registered, values: &[String]) -> Option<Vec<(&'static str, String)>> {
    operation
        .meta()
        .path_parameters()
        .zip(values)
        .map(|(name, raw)| {
            let text = percent_encoding::percent_decode_str(raw).decode_utf8().ok()?;
            // PostgreSQL cannot store NUL, so no id has one.
            (!text.contains('\0')).then(|| (name, text.into_owned()))
        })
        .collect()
}
