//! Metadata of the authorization server (RFC 8414) and of the protected resources (RFC 9728). Clients read it before they
//! have any credential. All URLs in it are made from the configured base URL, never from the header `Host`.

use super::answers::{preflight, shared, wrong_method};
use ::oauth::everyday;
use model::Scope;
use operation::RawAnswer;
use serde_json::{Value, json};

/// What the metadata is made of.
pub(super) struct Discovery {
    /// The base URL, which is the issuer.
    pub(super) base_url: String,
    /// Whether clients may register dynamically.
    pub(super) registration: bool,
}

impl Discovery {
    /// Answers a request below `/.well-known/`. `rest` is the path after it.
    pub(super) fn answer(&self, method: &str, rest: &str) -> Option<RawAnswer> {
        let body = self.document(rest)?;
        Some(match method {
            "OPTIONS" => preflight("GET, HEAD, OPTIONS"),
            "GET" | "HEAD" => {
                let answer = RawAnswer::status(200)
                    .header("cache-control", "public, max-age=300")
                    .header("x-content-type-options", "nosniff")
                    .body("application/json", body.to_string());
                shared(answer)
            }
            _ => shared(wrong_method("GET, HEAD, OPTIONS")),
        })
    }

    /// Returns the document of a path. Clients look for both documents with the path of the interface that they use
    /// behind the name, and without.
    fn document(&self, rest: &str) -> Option<Value> {
        let (name, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let resource = match path.strip_suffix('/').unwrap_or(path) {
            path @ ("" | "/api/v1" | "/api/v1/mcp") => path,
            // The path that the contract has below `/api/v1`, as some clients take it.
            "/mcp" => "/api/v1/mcp",
            _ => return None,
        };
        match name {
            "oauth-authorization-server" => Some(self.server()),
            "oauth-protected-resource" => Some(self.resource(resource)),
            _ => None,
        }
    }

    fn server(&self) -> Value {
        let url = |path: &str| format!("{}{path}", self.base_url);
        let methods = ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];
        let algorithms = ["RS256", "ES256", "EdDSA"];
        let mut document = json!({
            "issuer": self.base_url,
            "authorization_endpoint": url("/oauth/authorize"),
            "token_endpoint": url("/oauth/token"),
            "revocation_endpoint": url("/oauth/revoke"),
            "introspection_endpoint": url("/oauth/introspect"),
            "scopes_supported": Scope::of_workspaces().map(Scope::as_str).collect::<Vec<_>>(),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": methods,
            "token_endpoint_auth_signing_alg_values_supported": algorithms,
            "revocation_endpoint_auth_methods_supported": methods,
            "revocation_endpoint_auth_signing_alg_values_supported": algorithms,
            "introspection_endpoint_auth_methods_supported": methods,
            "introspection_endpoint_auth_signing_alg_values_supported": algorithms,
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
            "service_documentation": url("/docs/"),
        });
        if let Some(members) = document.as_object_mut().filter(|_| self.registration) {
            members.insert("registration_endpoint".to_owned(), url("/oauth/register").into());
        }
        document
    }

    fn resource(&self, path: &str) -> Value {
        json!({
            "resource": format!("{}{}", self.base_url, path),
            "authorization_servers": [self.base_url],
            // What an assistant needs every day. Apps that need more ask for it.
            "scopes_supported": everyday().iter().map(Scope::as_str).collect::<Vec<_>>(),
            "bearer_methods_supported": ["header"],
            "resource_name": "svc",
        })
    }
}
