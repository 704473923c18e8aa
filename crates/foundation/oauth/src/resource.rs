//! What tokens are for (RFC 8707).

use crate::refusal::{Refusal, RefusalCode};
use auth::Audience;
use model::text_enum;
use url::Url;

text_enum! {
    /// What a token is for.
    #[derive(Hash)]
    pub enum Resource {
        /// The service with all its interfaces.
        Service = "service",
        /// The MCP server only.
        Mcp = "mcp",
    }
}

impl Resource {
    /// Returns whether a token for this resource opens an interface.
    pub fn opens(self, audience: Audience) -> bool {
        match self {
            Self::Service => true,
            Self::Mcp => audience == Audience::Mcp,
        }
    }
}

/// The resources of a service: its origin, with or without a slash, `/api/v1`, and `/api/v1/mcp`.
///
/// Common clients send the origin, although they use another path. Only a token for `/api/v1/mcp` is limited.
#[derive(Debug, Clone)]
pub struct Resources {
    base: Option<Url>,
    base_text: String,
}

impl Resources {
    /// Creates the resources of a service with this base URL.
    pub fn new(base_url: &str) -> Self {
        let base_text = base_url.trim_end_matches('/').to_owned();
        Self { base: Url::parse(&base_text).ok(), base_text }
    }

    /// Reads the parameter `resource`. Ignores the case of scheme and host, the query, and one slash at the end.
    ///
    /// # Errors
    /// `invalid_target`.
    pub fn read(&self, text: &str) -> Result<Resource, Refusal> {
        self.find(text).ok_or_else(|| {
            Refusal::new(RefusalCode::InvalidTarget, "`resource` is not a URL of this service")
        })
    }

    /// Returns the URL of a resource.
    pub fn url(&self, resource: Resource) -> String {
        match resource {
            Resource::Service => format!("{}/api/v1", self.base_text),
            Resource::Mcp => format!("{}/api/v1/mcp", self.base_text),
        }
    }

    fn find(&self, text: &str) -> Option<Resource> {
        let base = self.base.as_ref()?;
        let url = Url::parse(text).ok()?;
        let is_bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if !is_bare || url.origin() != base.origin() {
            return None;
        }
        let path = url.path().strip_prefix(base.path().trim_end_matches('/'))?;
        match path.strip_suffix('/').unwrap_or(path) {
            "" | "/api/v1" => Some(Resource::Service),
            "/api/v1/mcp" => Some(Resource::Mcp),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_spellings_are_known() {
        let resources = Resources::new("https://svc.example:8443");
        for (text, resource) in [
            ("https://svc.example:8443", Some(Resource::Service)),
            ("https://svc.example:8443/", Some(Resource::Service)),
            ("HTTPS://SVC.Example:8443/api/v1", Some(Resource::Service)),
            ("https://svc.example:8443/api/v1/", Some(Resource::Service)),
            ("https://svc.example:8443/api/v1/mcp", Some(Resource::Mcp)),
            ("https://svc.example:8443/api/v1/mcp/", Some(Resource::Mcp)),
            ("https://svc.example:8443/api/v1/mcp?toolsets=core", Some(Resource::Mcp)),
            ("https://svc.example:8443/api/v1/mcp//", None),
            ("https://svc.example:8443/API/v1", None),
            ("https://svc.example:8443/api", None),
            ("https://svc.example:8443/api/v1/mcp#x", None),
            ("https://a@svc.example:8443/", None),
            ("http://svc.example:8443/", None),
            ("https://svc.example/", None),
            ("https://svc.example:8443.evil.example/", None),
            ("svc.example", None),
            ("", None),
        ] {
            assert_eq!(resources.read(text).ok(), resource, "{text}");
        }
    }

    #[test]
    fn a_default_port_may_be_written() {
        let resources = Resources::new("https://svc.example");
        assert_eq!(resources.read("https://svc.example:443/api/v1/mcp"), Ok(Resource::Mcp));
        assert_eq!(resources.url(Resource::Mcp), "https://svc.example/api/v1/mcp");
    }

    #[test]
    fn only_a_token_for_mcp_is_limited() {
        assert!(Resource::Service.opens(Audience::Rest) && Resource::Service.opens(Audience::Mcp));
        assert!(!Resource::Mcp.opens(Audience::Rest) && Resource::Mcp.opens(Audience::Mcp));
    }
}
