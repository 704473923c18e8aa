//! The declaration of an operation.

use auth::roles::Permission;
use model::{Scope, text_enum};
use std::fmt;

text_enum! {
    /// An HTTP method.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Method {
        /// Reads.
        Get = "GET",
        /// Makes or does something.
        Post = "POST",
        /// Replaces.
        Put = "PUT",
        /// Changes parts.
        Patch = "PATCH",
        /// Deletes.
        Delete = "DELETE",
    }
}

impl Method {
    /// Returns whether a request without a body counts as one with `{}`. A PUT or PATCH needs a body, because `{}`
    /// could change an object to a state that the caller never wrote down.
    pub(crate) fn may_go_without_body(self) -> bool {
        matches!(self, Self::Post | Self::Delete)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

text_enum! {
    /// How a list comes in pages (specification 4.2).
    pub enum Paging {
        /// `limit`, `starting_after` = an id; `has_more`.
        Cursor = "cursor",
        /// `limit`, `offset`; `pagination`.
        Offset = "offset",
        /// `limit`, `page`; `pagination`.
        Page = "page",
        /// An array, or with `paginate=true` pages with `next_cursor`.
        OptIn = "opt_in",
    }
}

impl Paging {
    /// Returns the query parameters of the mode, as error messages name them.
    pub(crate) fn parameters(self) -> &'static str {
        match self {
            Self::Cursor => "`limit` and `starting_after`",
            Self::Offset => "`limit` and `offset`",
            Self::Page => "`limit` and `page`",
            Self::OptIn => "`paginate=true`, `limit` and `starting_after`",
        }
    }

    /// Returns the paging mode of the first argument that has one.
    #[doc(hidden)]
    pub const fn first(of: &[Option<Self>]) -> Option<Self> {
        let mut rest = of;
        while let [one, others @ ..] = rest {
            if one.is_some() {
                return *one;
            }
            rest = others;
        }
        None
    }
}

text_enum! {
    /// The requests of an operation for which a member needs a sign-in younger than ten minutes.
    pub enum RecentSignIn {
        /// All of them. The gate checks it.
        Always = "always",
        /// Those that set or reveal a secret. The operation checks it with `Principal::expect_recent_sign_in`.
        Secrets = "secrets",
    }
}

/// The declaration of an operation: the arguments of `#[operation]`, and what the macro reads from the function.
#[derive(Debug)]
pub struct Meta {
    /// The operation id, such as `createRun`.
    pub id: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path below `/api/v1`, with `{parameters}`.
    pub path: &'static str,
    /// The scope that a key needs. `None` allows every active key.
    pub scope: Option<Scope>,
    /// The permission that a member who has signed in needs. Only operations of the dashboard have one: keys and apps
    /// cannot use them.
    pub session: Option<Permission>,
    /// Whether members can use the operation while the workspace is blocked. What a GET reads they can always read.
    pub when_blocked: bool,
    /// Whether the operation spends Energy.
    pub energy: bool,
    /// Whether requests and answers are JSON-RPC messages instead of the service's envelope. Refusals before the message
    /// is read have the envelope.
    pub json_rpc: bool,
    /// Whether a member needs a sign-in younger than ten minutes.
    pub recent_sign_in: Option<RecentSignIn>,
    /// The maximum number of rows in the array form of an opt-in list.
    pub ceiling: i64,
    /// The maximum size of the body in MiB.
    pub body_mib: usize,
    /// Whether the operation can change something: its function takes a transaction, or the means to begin one.
    pub changes: bool,
    /// The paging mode of a list.
    pub paging: Option<Paging>,
    /// The deprecation, if the operation will be retired.
    pub deprecated: Option<Deprecated>,
    /// One line for the contract.
    pub summary: &'static str,
    /// The rest of the doc comment.
    pub description: &'static str,
    /// The source file of the declaration.
    pub file: &'static str,
}

impl Meta {
    /// Returns whether `Idempotency-Key` has an effect: on every operation that may change something.
    pub fn is_idempotent_by_key(&self) -> bool {
        self.method != Method::Get && self.changes
    }

    /// Returns whether test keys are refused.
    pub fn is_test_restricted(&self) -> bool {
        self.scope.is_some_and(Scope::is_test_restricted)
    }

    /// Returns whether only partner keys may call the operation.
    pub fn is_partner_only(&self) -> bool {
        self.scope.is_some_and(Scope::is_partner_only)
    }

    /// Returns what a caller needs: the scope, or the permission of an operation of the dashboard.
    pub fn needs(&self) -> Option<&'static str> {
        self.scope.map(Scope::as_str).or_else(|| self.session.map(Permission::as_str))
    }

    /// Returns whether a member can use the operation while the workspace is blocked, to see why it is.
    pub(crate) fn is_open_when_blocked(&self) -> bool {
        self.method == Method::Get || self.when_blocked
    }

    /// Returns the maximum size of the body in bytes.
    pub fn body_limit(&self) -> usize {
        self.body_mib << 20
    }

    /// Returns the names of the path's parameters, in order.
    pub fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

/// The declared deprecation of an operation.
#[derive(Debug)]
pub struct Deprecated {
    /// The day of the announcement, such as `2026-11-21`.
    pub since: &'static str,
    /// The day of the retirement, which takes place at midnight UTC.
    pub sunset: &'static str,
    /// The replacement: method and path of an operation, such as `GET /runs`.
    pub alternative: &'static str,
}
