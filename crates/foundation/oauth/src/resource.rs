//! The parameter `resource` (RFC 8707): for which of the service's interfaces a token is.

/// An interface of the service, as `resource` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// The origin: all interfaces.
    Service,
    /// `/api/v1`: the REST interface.
    Rest,
    /// `/api/v1/mcp`: the MCP server.
    Mcp,
}

impl Resource {
    /// Returns the path below the base URL.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Service => "",
            Self::Rest => "/api/v1",
            Self::Mcp => "/api/v1/mcp",
        }
    }

    /// Reads the parameter of a service with this base URL. Clients spell it in several ways: letter case in scheme and
    /// host, one slash at the end, and a query are ignored. Returns `None` for what is not an interface of the service.
    pub fn parse(base_url: &str, text: &str) -> Option<Self> {
        if text.contains('#') {
            return None;
        }
        let text = text.split('?').next().unwrap_or_default();
        let text = text.strip_suffix('/').unwrap_or(text);
        let (base_origin, base_path) = split_origin(base_url)?;
        let (origin, path) = split_origin(text)?;
        if !origin.eq_ignore_ascii_case(base_origin) {
            return None;
        }
        let path = path.strip_prefix(base_path)?;
        [Self::Service, Self::Rest, Self::Mcp].into_iter().find(|resource| resource.path() == path)
    }
}

/// Splits a URL before its path.
fn split_origin(url: &str) -> Option<(&str, &str)> {
    let host = url.find("://")? + 3;
    let path = url.get(host..)?.find('/').map_or(url.len(), |slash| host + slash);
    url.split_at_checked(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_several_spellings() {
        for (text, expected) in [
            ("https://svc.example", Some(Resource::Service)),
            ("https://svc.example/", Some(Resource::Service)),
            ("HTTPS://SVC.example/?x=1", Some(Resource::Service)),
            ("https://svc.example/api/v1", Some(Resource::Rest)),
            ("https://svc.example/api/v1/", Some(Resource::Rest)),
            ("https://svc.example/api/v1/mcp", Some(Resource::Mcp)),
            ("https://svc.example/api/v1/mcp/", Some(Resource::Mcp)),
            ("https://svc.example/api/v1/mcp?toolsets=tasks", Some(Resource::Mcp)),
            ("https://svc.example/api/v1/mcp/?toolsets=tasks", Some(Resource::Mcp)),
            ("https://svc.example/API/v1/mcp", None),
            ("https://svc.example//", None),
            ("https://svc.example/api/v1/mcp//", None),
            ("https://svc.example/api/v1/mcp#x", None),
            ("https://svc.example/api", None),
            ("https://svc.example/api/v1/contacts", None),
            ("https://svc.example:443/", None),
            ("http://svc.example/", None),
            ("https://svc.example.evil.example/", None),
            ("https://other.example/api/v1", None),
            ("svc.example", None),
            ("", None),
        ] {
            assert_eq!(Resource::parse("https://svc.example", text), expected, "{text}");
        }
    }

    #[test]
    fn a_base_url_may_have_a_path() {
        let parse = |text: &str| Resource::parse("https://example.com/svc", text);
        assert_eq!(parse("https://example.com/svc/"), Some(Resource::Service));
        assert_eq!(parse("https://example.com/svc/api/v1/mcp"), Some(Resource::Mcp));
        assert_eq!(parse("https://example.com/api/v1/mcp"), None);
        assert_eq!(parse("https://example.com"), None);
    }
}
