//! Metadata, and what pages of other origins may read.

use super::bed::{BASE, Bed};
use serde_json::json;
use testkit::{Kind, TestApp, both};

#[both]
async fn metadata_is_at_the_root_and_with_the_path_of_each_interface(kind: Kind) {
    let app = TestApp::new(kind).await;
    for (path, resource) in [
        ("", BASE),
        ("/", BASE),
        ("/api/v1", "https://svc.example/api/v1"),
        ("/api/v1/mcp", "https://svc.example/api/v1/mcp"),
        ("/mcp", "https://svc.example/api/v1/mcp"),
    ] {
        let ask = |name: &str| {
            let ask = app.ask_beside("GET", &format!("/.well-known/{name}{path}"));
            ask.header("x-forwarded-host", "evil.example").send()
        };
        let server = ask("oauth-authorization-server").await;
        assert_eq!(server.status, 200, "{path}: {}", server.text);
        assert_eq!(server.headers["access-control-allow-origin"], "*");
        assert_eq!(server.headers["cache-control"], "public, max-age=300");
        assert_eq!(server.headers["content-type"], "application/json");
        assert_eq!(server.body["issuer"], BASE);
        for (member, endpoint) in [
            ("authorization_endpoint", "authorize"),
            ("token_endpoint", "token"),
            ("revocation_endpoint", "revoke"),
            ("introspection_endpoint", "introspect"),
            ("registration_endpoint", "register"),
        ] {
            assert_eq!(server.body[member], format!("{BASE}/oauth/{endpoint}"));
        }
        assert_eq!(server.body["code_challenge_methods_supported"], json!(["S256"]));
        assert_eq!(server.body["authorization_response_iss_parameter_supported"], true);
        assert_eq!(server.body["client_id_metadata_document_supported"], true);
        let protected = ask("oauth-protected-resource").await;
        assert_eq!(protected.status, 200, "{path}");
        assert_eq!(protected.body["resource"], resource);
        assert_eq!(protected.body["authorization_servers"], json!([BASE]));
        assert!(protected.body["scopes_supported"].as_array().unwrap().contains(&json!("mcp:use")));
        assert!(!protected.text.contains("127.0.0.1"), "{}", protected.text);
    }
    for path in ["openid-configuration", "oauth-authorization-server/x", "oauth-protected-resourcex", ""] {
        let answer = app.ask_beside("GET", &format!("/.well-known/{path}")).send().await;
        assert_eq!(answer.status, 404, "{path}");
    }
    assert_eq!(app.ask_beside("POST", "/.well-known/oauth-protected-resource").send().await.status, 405);
}

#[both]
async fn pages_of_all_origins_may_call_the_endpoints_for_programs(kind: Kind) {
    let bed = Bed::new(kind).await;
    for path in [
        "/oauth/token",
        "/oauth/revoke",
        "/oauth/introspect",
        "/oauth/register",
        "/token",
        "/register",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource/api/v1/mcp",
    ] {
        let ask = bed.app.ask_beside("OPTIONS", path).header("origin", "https://page.example");
        let answer = ask.header("access-control-request-method", "POST").send().await;
        assert_eq!((answer.status, answer.text.as_str()), (204, ""), "{path}");
        assert_eq!(answer.headers["access-control-allow-origin"], "*");
        assert!(answer.headers["access-control-allow-headers"].contains("Content-Type"));
        assert!(!answer.headers.contains_key("access-control-allow-credentials"));
    }
    for path in ["/oauth/authorize", "/authorize"] {
        let answer = bed.app.ask_beside("GET", path).header("origin", "https://page.example").send().await;
        assert!(!answer.headers.contains_key("access-control-allow-origin"), "{path}");
    }
    for path in ["/oauth/", "/oauth/x", "/oauth/token/", "/oauth/oauth/token", "/tokens"] {
        assert_eq!(bed.app.ask_beside("POST", path).send().await.status, 404, "{path}");
    }
}
