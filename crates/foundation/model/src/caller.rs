//! Who asks: the key, the workspace it operates, and the limits that hold.

use crate::text_enum;
use crate::{
    AccountId, Actor, ActorType, Cause, Chain, Code, ContactId, Error, JsonText, KeyId, MemberId, MemberRole,
    PartnerId, RequestId, RequestRef, Result, Scope, ScopeSet, SessionId, Timestamp, Trace, WorkspaceId,
};
use std::net::IpAddr;
use std::sync::Arc;

text_enum! {
    /// Whether a key's actions are real. It is fixed when the key is created.
    #[derive(Hash)]
    pub enum Env {
        /// Effects are real, and Energy is spent.
        Live = "live",
        /// External effects are rejected or simulated, and no Energy is spent.
        Test = "test",
    }
}

/// The type of owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOwner {
    /// A customer's key, for its own workspace.
    Workspace(WorkspaceId),
    /// A partner's key, for the client workspaces attributed to it.
    Partner(PartnerId),
}

/// An API key, as far as the rest of the service needs to know it.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// Names the key in logs.
    pub id: KeyId,
    /// What survives rotation: budget, quota and idempotency memory hang on it.
    pub lineage: KeyId,
    /// Whose it is.
    pub owner: KeyOwner,
    /// `live` or `test`.
    pub env: Env,
    /// The scopes that count: stored, still known, and allowed for this kind of owner.
    pub scopes: ScopeSet,
    /// The key's own ceiling of requests per minute; `None` leaves the plan's.
    pub rate_limit_rpm: Option<i64>,
    /// The key's own monthly ceiling of requests; `None` leaves the plan's.
    pub monthly_quota: Option<i64>,
    /// The most Energy money the key may spend in a month, in cents.
    pub budget_cents: Option<i64>,
    /// Whether reaching the budget refuses further requests.
    pub budget_cutoff: bool,
    /// The client that a partner key operates when a request names none.
    pub default_workspace: Option<WorkspaceId>,
}

impl ApiKey {
    /// Refuses what this key may not do.
    ///
    /// # Errors
    /// `missing_scope` with the scope as `param`.
    pub fn expect_scope(&self, scope: Scope) -> Result<()> {
        if self.scopes.contains(scope) {
            return Ok(());
        }
        let message = format!("The key lacks the scope `{}`.", scope.as_str());
        Err(Error::new(Code::MissingScope, message).param(scope.as_str()))
    }

    /// Whether the workspace is one that this key is for: its own, or one attributed to its partner.
    pub fn operates(&self, workspace: &Workspace) -> bool {
        match self.owner {
            KeyOwner::Workspace(own) => own == workspace.id,
            KeyOwner::Partner(partner) => workspace.partner == Some(partner),
        }
    }
}

/// A plan's limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The plan's name in the catalogue, such as `starter`.
    pub id: String,
    /// Requests per minute of each key; `None` is no cap.
    pub rate_limit_rpm: Option<i64>,
    /// Requests per month of each key; `None` is no cap.
    pub monthly_quota: Option<i64>,
    /// Test runs per workspace and day; zero forbids them.
    pub test_runs_per_day: i64,
    /// Contacts of the workspace; `None` is no cap.
    pub contacts_limit: Option<i64>,
    /// What 1,000 Energy cost, in US dollars' millionths.
    pub usd_micros_per_1000_energy: i64,
    /// Whether work is paid from the balance of Energy. Otherwise its cost is only recorded.
    pub energy_metered: bool,
}

impl Plan {
    /// Stands in the place of a name where a workspace has no plan.
    pub const NONE: &'static str = "none";

    /// Whether there is no plan, rather than one without caps.
    pub fn is_none(&self) -> bool {
        self.id == Self::NONE
    }
}

text_enum! {
    /// The status of a subscription.
    pub enum SubscriptionStatus {
        /// Paid.
        Active = "active",
        /// In a trial period.
        Trialing = "trialing",
        /// Paid by a sponsor.
        Sponsored = "sponsored",
        /// A payment is overdue. The workspace can be used during the grace period.
        PastDue = "past_due",
        /// Cancelled by the owner.
        Canceled = "canceled",
        /// No plan.
        Inactive = "inactive",
        /// Active, but without Energy.
        EnergyDepleted = "energy_depleted",
    }
}

/// The tenant that a request operates, with the plan in force.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The id of the workspace.
    pub id: WorkspaceId,
    /// The name used in URLs.
    pub slug: String,
    /// The partner that it is attributed to.
    pub partner: Option<PartnerId>,
    /// Its plan.
    pub plan: Plan,
    /// Its subscription.
    pub subscription: SubscriptionStatus,
    /// Why nothing works here, when the account is cut.
    pub blocked_reason: Option<String>,
}

/// The contact whom an agent answers by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answering {
    /// The contact.
    pub contact: ContactId,
    /// The epoch of the contact when the agent began. In a later one the agent's work has no effect.
    pub epoch: i64,
}

impl Answering {
    /// Why the agent's work has no effect any more.
    #[must_use]
    pub fn refusal() -> Error {
        let message = "The conversation was handed over after the agent began to answer it, so what the agent does for the contact \
                       has no effect any more.";
        Error::new(Code::InvalidState, message)
            .with("details", serde_json::json!({ "reason": "handed_over" }))
    }
}

/// Who acts through a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// Whoever holds the key's secret.
    Key,
    /// A member of the team who has signed in.
    Member(MemberSession),
    /// An OAuth app that a member has authorized.
    App(AuthorizedApp),
}

impl Principal {
    /// Refuses a member whose sign-in is older than ten minutes. Keys and apps pass: they have no sign-in.
    ///
    /// # Errors
    /// `reauthentication_required`.
    pub fn expect_recent_sign_in(&self, now: Timestamp) -> Result<()> {
        match self {
            Self::Member(session) if !session.is_recent(now) => {
                let message = "This needs a sign-in that is younger than ten minutes. Sign in again, and repeat the request.";
                Err(Error::new(Code::ReauthenticationRequired, message))
            }
            Self::Member(_) | Self::Key | Self::App(_) => Ok(()),
        }
    }

    /// Returns the member who has signed in.
    pub fn member(&self) -> Option<MemberId> {
        match self {
            Self::Member(session) => Some(session.member),
            Self::Key | Self::App(_) => None,
        }
    }
}

/// A member of the team who has signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSession {
    /// The account.
    pub account: AccountId,
    /// The account's member in the workspace of the request.
    pub member: MemberId,
    /// The session.
    pub session: SessionId,
    /// From where the request came.
    pub address: IpAddr,
    /// When the account last proved who it is.
    pub authenticated_at: Timestamp,
    /// The role of the member.
    pub role: MemberRole,
    /// Whether the account manages the installation.
    pub is_operator: bool,
}

impl MemberSession {
    /// For how long after a sign-in the operations that reveal or change secrets are open, in seconds.
    pub const RECENT_SECONDS: i64 = 600;

    /// Requests per minute of a member, in both environments together. The plan's limits are for programs.
    pub const RATE_LIMIT_RPM: i64 = 600;

    /// Returns whether the account proved who it is in the last ten minutes.
    pub fn is_recent(&self, now: Timestamp) -> bool {
        now < self.authenticated_at.plus_seconds(Self::RECENT_SECONDS)
    }
}

/// An OAuth app that a member has authorized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizedApp {
    /// The `client_id` of the app.
    pub client_id: String,
    /// The name that the app gives itself.
    pub name: String,
    /// The member who authorized it.
    pub member: MemberId,
}

/// Who does something on whose behalf. What an operation knows of its request beside its input.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The request.
    pub request: RequestId,
    /// The key of the request.
    pub key: Arc<ApiKey>,
    /// Who acts through the key.
    pub principal: Principal,
    /// The workspace of the request.
    pub workspace: Arc<Workspace>,
    /// The request's `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// The trace that the request came with.
    pub trace: Option<Trace>,
    /// Who acts where it is not the key itself: the member whose key it is, or an agent in a run that the key asked for.
    pub actor: Option<Actor>,
    /// Whom the actor answers, where it is an agent that answers a contact by itself.
    pub answering: Option<Answering>,
    /// The place in the chain of causes at which the request acts; `None` for a request that nothing of ours led to.
    pub chain: Option<Chain>,
}

impl Caller {
    /// What the events of this request come from.
    pub fn cause(&self) -> Cause {
        let cause = Cause::request(RequestRef {
            id: self.request.clone(),
            key_id: self.key.id.clone(),
            idempotency_key: self.idempotency_key.clone(),
            trace: self.trace.clone(),
        })
        .at(self.chain.clone());
        match &self.actor {
            None => cause,
            Some(actor) => Cause { actor: JsonText::of(actor), ..cause },
        }
    }

    /// Returns whether something automatic acts, such as an agent or a flow, and not the one who sent the request. It may
    /// see less than the key.
    pub fn is_automatic(&self) -> bool {
        self.actor.as_ref().is_some_and(|actor| actor.kind != ActorType::User)
    }

    /// The same request, in which `actor` does what needs these scopes and no others.
    #[must_use]
    pub fn acting(&self, actor: Actor, scopes: ScopeSet) -> Self {
        let key = ApiKey { scopes, ..(*self.key).clone() };
        Self { key: Arc::new(key), actor: Some(actor), ..self.clone() }
    }

    /// The trace that the request belongs to.
    pub fn trace(&self) -> Trace {
        self.trace.clone().unwrap_or_else(|| Trace::of_id(self.request.as_str()))
    }

    /// The tenant whose rows may be touched.
    pub fn workspace_id(&self) -> WorkspaceId {
        self.workspace.id
    }

    /// Whether actions have real effects.
    pub fn livemode(&self) -> bool {
        self.key.env == Env::Live
    }

    /// The member who asks. The gate lets nobody else through to an operation of the dashboard.
    ///
    /// # Errors
    /// `session_required`.
    pub fn member(&self) -> Result<&MemberSession> {
        match &self.principal {
            Principal::Member(member) => Ok(member),
            Principal::Key | Principal::App(_) => Err(Error::new(Code::SessionRequired, "Sign in.")),
        }
    }

    /// The effective ceiling of requests per minute: that of members, or the stricter of key and plan.
    pub fn rate_limit_rpm(&self) -> Option<i64> {
        let others = match self.principal {
            Principal::Member(_) => Some(MemberSession::RATE_LIMIT_RPM),
            Principal::Key | Principal::App(_) => self.workspace.plan.rate_limit_rpm,
        };
        stricter(self.key.rate_limit_rpm, others)
    }

    /// The effective monthly ceiling of requests: the stricter of key and plan. Requests of members are not counted.
    pub fn monthly_quota(&self) -> Option<i64> {
        match self.principal {
            Principal::Member(_) => None,
            Principal::Key | Principal::App(_) => {
                stricter(self.key.monthly_quota, self.workspace.plan.monthly_quota)
            }
        }
    }
}

/// The lower of two limits. `None` is "no cap" and loses against any number.
pub fn stricter(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::stricter;

    #[test]
    fn no_cap_loses_against_any_number() {
        assert_eq!(stricter(None, None), None);
        assert_eq!(stricter(Some(5), None), Some(5));
        assert_eq!(stricter(None, Some(0)), Some(0));
        assert_eq!(stricter(Some(5), Some(3)), Some(3));
    }
}
