//! The ordinary course: a code, tokens, refreshes, more scopes.

use crate::bed::{Bed, CLIENT, exchanging, issued, refreshing, refused};
use oauth::{Authorization, CodeExchange, Refresh, Resource};
use testkit::Kind;

#[testkit::both]
async fn a_code_becomes_tokens_and_they_are_refreshed(kind: Kind) {
    let bed = Bed::new(kind).await;
    let first = bed.tokens("contacts:read,tasks:read").await;
    assert_eq!((first.scope.as_str(), first.expires_in), ("contacts:read tasks:read", 3600));
    assert!(first.access.starts_with("svc_at_") && first.refresh.starts_with("svc_rt_"));
    let identity = bed.identity(&first.access).await.unwrap();
    assert_eq!(identity.scopes.unwrap().to_string(), "contacts:read,tasks:read");
    assert_eq!(identity.key.member, Some(model::MemberId(1)));

    bed.advance(3600);
    assert!(bed.identity(&first.access).await.is_none());
    let second = issued(&bed.refresh(refreshing(&first.refresh)).await);
    assert_ne!((&second.access, &second.refresh), (&first.access, &first.refresh));
    assert_eq!(second.scope, first.scope);
    let again = bed.identity(&second.access).await.unwrap();
    assert_eq!(again.key.key.id, identity.key.key.id);
    assert!(bed.events().await.is_empty());
}

#[testkit::both]
async fn whoever_lacks_what_a_code_is_bound_to_burns_it(kind: Kind) {
    let bed = Bed::new(kind).await;
    let code = bed.code("contacts:read").await;
    let right = exchanging(&code);
    let verifier: String = "a".repeat(43);
    for (wrong, error) in [
        (CodeExchange { client_id: "https://other.example/".into(), ..right.clone() }, "invalid_grant"),
        (
            CodeExchange { redirect_uri: "http://127.0.0.1:5001/callback".into(), ..right.clone() },
            "invalid_grant",
        ),
        (CodeExchange { redirect_uri: String::new(), ..right.clone() }, "invalid_grant"),
        (CodeExchange { verifier, ..right.clone() }, "invalid_grant"),
        (CodeExchange { verifier: "short".into(), ..right.clone() }, "invalid_grant"),
    ] {
        let code = bed.code("contacts:read").await;
        let reply = bed.exchange(CodeExchange { code: code.clone(), ..wrong }).await;
        assert_eq!(refused(&reply), error);
        assert_eq!(refused(&bed.exchange(exchanging(&code)).await), "invalid_grant");
    }
    // A code that is none burns nothing.
    for code in ["", "svc_ac_", &code.replace("svc_ac_", "svc_rt_"), &format!("{code}0")] {
        assert_eq!(refused(&bed.exchange(exchanging(code)).await), "invalid_grant");
    }
    issued(&bed.exchange(right).await);
    assert!(bed.events().await.is_empty());
}

#[testkit::both]
async fn a_code_lives_for_a_minute(kind: Kind) {
    let bed = Bed::new(kind).await;
    let (early, late) = (bed.code("contacts:read").await, bed.code("contacts:read").await);
    bed.advance(59);
    issued(&bed.exchange(exchanging(&early)).await);
    bed.advance(1);
    assert_eq!(refused(&bed.exchange(exchanging(&late)).await), "invalid_grant");
}

#[testkit::both]
async fn authorizing_again_extends_the_grant_and_older_tokens(kind: Kind) {
    let bed = Bed::new(kind).await;
    let old = bed.tokens("contacts:read").await;
    let new = bed.tokens("tasks:write").await;
    assert_eq!(new.scope, "tasks:write");
    let (workspace, account) = (bed.workspace, bed.account.clone());
    let grants = bed.db().read(move |read| oauth::grants_of_account(read, &account)).await.unwrap();
    assert_eq!(grants.len(), 1);
    assert_eq!(grants[0].scopes.to_string(), "contacts:read,tasks:write");
    let listed = bed.db().read(move |read| oauth::grants_of_workspace(read, workspace)).await.unwrap();
    assert_eq!(listed[0].key_id, grants[0].key_id);

    // An access token keeps the scopes that it was issued with. A refresh carries the union.
    let scopes = bed.identity(&old.access).await.unwrap().scopes.unwrap();
    assert_eq!(scopes.to_string(), "contacts:read");
    let refreshed = issued(&bed.refresh(refreshing(&old.refresh)).await);
    assert_eq!(refreshed.scope, "contacts:read tasks:write");
}

#[testkit::both]
async fn an_environment_has_a_grant_of_its_own(kind: Kind) {
    let bed = Bed::new(kind).await;
    let live = bed.tokens("contacts:read").await;
    let new = Authorization { env: model::Env::Test, ..bed.authorization(CLIENT, "tasks:read") };
    let code = bed.authorize(new).await;
    let test = issued(&bed.exchange(exchanging(&code)).await);
    let (live, test) = (bed.identity(&live.access).await.unwrap(), bed.identity(&test.access).await.unwrap());
    assert_ne!(live.key.key.id, test.key.key.id);
    assert_eq!((live.key.key.env, test.key.key.env), (model::Env::Live, model::Env::Test));
    assert_eq!(test.key.key.scopes.to_string(), "tasks:read");
}

#[testkit::both]
async fn a_refresh_may_ask_for_less_and_never_for_more(kind: Kind) {
    let bed = Bed::new(kind).await;
    let tokens = bed.tokens("contacts:read,tasks:read").await;
    let asking = |scope: &str| Refresh { scope: Some(scope.into()), ..refreshing(&tokens.refresh) };
    for wider in ["contacts:write", "contacts:read tasks:write", "nonsense", "contacts:read,tasks:read"] {
        assert_eq!(refused(&bed.refresh(asking(wider)).await), "invalid_scope", "{wider}");
    }
    // A refusal uses nothing up.
    let narrow = issued(&bed.refresh(asking("tasks:read")).await);
    assert_eq!(narrow.scope, "tasks:read");
    let scopes = bed.identity(&narrow.access).await.unwrap().scopes.unwrap();
    assert_eq!(scopes.to_string(), "tasks:read");
    // The next refresh may ask for all again.
    let wide = issued(&bed.refresh(refreshing(&narrow.refresh)).await);
    assert_eq!(wide.scope, "contacts:read tasks:read");
}

#[testkit::both]
async fn a_resource_is_narrowed_and_never_widened(kind: Kind) {
    let bed = Bed::new(kind).await;
    let mcp = Authorization { resource: Resource::Mcp, ..bed.authorization(CLIENT, "mcp:use") };
    let code = bed.authorize(mcp.clone()).await;
    let wide = CodeExchange { resource: Some(Resource::Service), ..exchanging(&code) };
    assert_eq!(refused(&bed.exchange(wide).await), "invalid_target");
    let code = bed.authorize(mcp).await;
    let bound = issued(&bed.exchange(exchanging(&code)).await);
    assert!(bed.identity(&bound.access).await.is_none(), "it opens MCP only");
    let wide = Refresh { resource: Some(Resource::Service), ..refreshing(&bound.refresh) };
    assert_eq!(refused(&bed.refresh(wide).await), "invalid_target");

    let free = bed.tokens("mcp:use").await;
    assert!(bed.identity(&free.access).await.is_some());
    let narrow = Refresh { resource: Some(Resource::Mcp), ..refreshing(&free.refresh) };
    let narrow = issued(&bed.refresh(narrow).await);
    assert!(bed.identity(&narrow.access).await.is_none());
    let free = issued(&bed.refresh(refreshing(&narrow.refresh)).await);
    assert!(bed.identity(&free.access).await.is_some());
}
