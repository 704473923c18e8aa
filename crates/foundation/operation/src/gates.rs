//! The names of the gates.

use model::text_enum;

text_enum! {
    /// The checks of a request, in their order (docs/architecture.md).
    pub enum Gate {
        /// The sizes of headers and body.
        Size = "size",
        /// The key.
        Credential = "credential",
        /// Requests per minute.
        Rate = "rate",
        /// The address.
        Route = "route",
        /// The workspace.
        Workspace = "workspace",
        /// The workspace's plan.
        Plan = "plan",
        /// The key's scopes.
        Scope = "scope",
        /// What test keys may do.
        TestMode = "test_mode",
        /// How long ago a member has signed in.
        RecentSignIn = "recent_sign_in",
        /// The `Idempotency-Key`.
        Idempotency = "idempotency",
        /// Requests per month.
        Quota = "quota",
        /// The key's budget.
        Budget = "budget",
        /// The input.
        Body = "body",
        /// The operation itself.
        Operation = "operation",
    }
}
