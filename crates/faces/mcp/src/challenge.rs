//! `WWW-Authenticate`: how a client that lacks a credential or a scope finds the authorization server (RFC 9728, RFC 6750).

use model::Scope;
use oauth::everyday;

/// Makes the challenges of the endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Challenges {
    metadata_url: String,
}

impl Challenges {
    pub(crate) fn new(base_url: &str, path: &str) -> Self {
        let base_url = base_url.trim_end_matches('/');
        Self { metadata_url: format!("{base_url}/.well-known/oauth-protected-resource{path}") }
    }

    /// The challenge of a 401. Clients ask for exactly the scopes that it names, and some cannot ask for more later, so it
    /// names those that the everyday tools need.
    pub(crate) fn unauthorized(&self) -> String {
        let Self { metadata_url } = self;
        let scopes: Vec<&str> = everyday().iter().map(Scope::as_str).collect();
        format!("Bearer resource_metadata=\"{metadata_url}\", scope=\"{}\"", scopes.join(" "))
    }

    /// The challenge of a 403: all scopes that the call needs, so that the user consents once.
    pub(crate) fn insufficient(&self, scopes: &[Scope]) -> String {
        let Self { metadata_url } = self;
        let mut all = vec![Scope::McpUse.as_str()];
        all.extend(
            scopes.iter().map(|scope| scope.as_str()).filter(|scope| *scope != Scope::McpUse.as_str()),
        );
        format!(
            "Bearer error=\"insufficient_scope\", scope=\"{}\", resource_metadata=\"{metadata_url}\", \
             error_description=\"The token lacks a scope.\"",
            all.join(" ")
        )
    }
}
