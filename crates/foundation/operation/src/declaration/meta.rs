//! What is declared of an operation.

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
    /// Whether a request without a body may stand for one with `{}`. Not where that would change an object to
    /// something that nobody wrote down.
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
    /// The query parameters of the mode, as messages to callers name them.
    pub(crate) fn parameters(self) -> &'static str {
        match self {
            Self::Cursor => "`limit` and `starting_after`",
            Self::Offset => "`limit` and `offset`",
            Self::Page => "`limit` and `page`",
            Self::OptIn => "`paginate=true`, `limit` and `starting_after`",
        }
    }

    /// The paging of an operation: that of the argument that has one.
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

/// The declaration of an operation: what `#[operation]` was given, and what it read off the function.
#[derive(Debug)]
pub struct Meta {
    /// The operation id, such as `createRun`.
    pub id: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path below `/api/v1`, with `{parameters}`.
    pub path: &'static str,
    /// The scope that a key needs; `None` lets any active key in.
    pub scope: Option<Scope>,
    /// Whether it spends Energy.
    pub energy: bool,
    /// The most rows in the array form of an opt-in list.
    pub ceiling: i64,
    /// The largest body in MiB.
    pub body_mib: usize,
    /// Whether it can change something: its function takes a transaction, or the means to begin one.
    pub changes: bool,
    /// How its list comes in pages.
    pub paging: Option<Paging>,
    /// Whether, and when, it will be retired.
    pub deprecated: Option<Deprecated>,
    /// One line for the contract.
    pub summary: &'static str,
    /// The rest of the doc comment.
    pub description: &'static str,
    /// The source file that declares it.
    pub file: &'static str,
}

impl Meta {
    /// Whether `Idempotency-Key` counts: for everything that may change something.
    pub fn is_idempotent_by_key(&self) -> bool {
        self.method != Method::Get && self.changes
    }

    /// Whether a test key is refused.
    pub fn is_test_restricted(&self) -> bool {
        self.scope.is_some_and(Scope::is_test_restricted)
    }

    /// Whether only partner keys may use it.
    pub fn is_partner_only(&self) -> bool {
        self.scope.is_some_and(Scope::is_partner_only)
    }

    /// The largest body in bytes (decision 14).
    pub fn body_limit(&self) -> usize {
        self.body_mib << 20
    }

    /// The names of the path's parameters, in order.
    pub fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

/// What is declared of an operation that will be retired.
#[derive(Debug)]
pub struct Deprecated {
    /// The day of the announcement, such as `2026-11-21`.
    pub since: &'static str,
    /// The day on which it stops, at midnight UTC.
    pub sunset: &'static str,
    /// What to use instead: method and path of an operation, such as `GET /runs`.
    pub alternative: &'static str,
}
