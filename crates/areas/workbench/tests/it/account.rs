//! The own account.

use model::{Env, MemberRole};
use serde_json::json;
use testkit::{Kind, TestApp};

#[testkit::both]
async fn a_person_reads_and_changes_the_own_account(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let member = app.member(workspace, MemberRole::Agent).await;
    let token = app.token(&member, Env::Live);
    let me = app.get("/dashboard/me", &token).await.expect(200);
    assert_eq!((&me["role"], &me["locale"]), (&json!("agent"), &json!("en")));
    assert_eq!(me["permissions"], json!(["account", "conversations:close"]));
    assert_eq!(me["workspaces"][0]["id"], workspace.0);
    let patch = json!({ "name": " Carla Díaz ", "locale": "pt-BR" });
    let me = app.patch("/dashboard/me", &token, patch).await.expect(200);
    assert_eq!((&me["name"], &me["locale"]), (&json!("Carla Díaz"), &json!("pt-BR")));
    for locale in ["", "english", "pt_BR", "PT"] {
        let refused = app.patch("/dashboard/me", &token, json!({ "locale": locale })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("locale"));
    }
    let key = app.key(workspace, Env::Live, &["*"]).await;
    app.get("/dashboard/me", &key).await.expect_error(401, "session_required");
}

#[testkit::both]
async fn a_person_ends_the_session_of_another_browser(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let member = app.member(workspace, MemberRole::Viewer).await;
    let other = app.member(workspace, MemberRole::Viewer).await;
    let account = member.session.account.clone();
    app.data.clock.advance(chrono::Duration::seconds(1));
    let opened = app.db().write(move |tx| {
        Ok(accounts::sessions::open(tx, &account, [203, 0, 113, 7].into(), "Firefox")?.0.id)
    });
    let second = opened.await.unwrap();
    let token = app.token(&member, Env::Live);
    let listed = app.get("/dashboard/me/sessions", &token).await.expect(200);
    let current: Vec<bool> =
        listed.as_array().unwrap().iter().map(|one| one["is_current"].as_bool().unwrap()).collect();
    assert_eq!(current, [false, true], "{listed}");
    assert_eq!(listed[0]["user_agent"], "Firefox");
    let path = format!("/dashboard/me/sessions/{second}");
    app.delete(&path, &app.token(&other, Env::Live)).await.expect_error(404, "not_found");
    app.delete(&path, &token).await.expect(200);
    assert_eq!(app.get("/dashboard/me/sessions", &token).await.expect(200).as_array().unwrap().len(), 1);
}

#[testkit::both]
async fn a_new_password_ends_all_sessions(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let member = app.member(workspace, MemberRole::Owner).await;
    let email = format!("{}@example.com", member.session.account);
    let link = {
        let account = member.session.account.clone();
        let new = accounts::links::NewLink::PasswordReset(account);
        let issued =
            app.db().write(move |tx| accounts::links::issue(tx, &new, &accounts::Actor::CommandLine));
        issued.await.unwrap()
    };
    let sign_in = app.service.pipeline.services.get::<accounts::SignIn>().unwrap();
    let address = [127, 0, 0, 1].into();
    sign_in.reset_password(&link, "copper lantern on the quay".to_owned(), address).await.unwrap();
    let signed = sign_in
        .attempt(&email, "copper lantern on the quay".to_owned(), None, address, "Firefox")
        .await
        .unwrap();
    let session = model::MemberSession { session: signed.session.id, ..member.session.clone() };
    let token = app.token(&testkit::Member { session, ..member.clone() }, Env::Live);
    let change = |current: &str, new: &str| json!({ "current_password": current, "new_password": new });
    let path = "/dashboard/me/password";
    let refused = app.post(path, &token, change("wrong", "eleven quiet herons at dusk")).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("current_password"));
    let refused = app.post(path, &token, change("copper lantern on the quay", "short")).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("new_password"));
    app.get("/dashboard/me", &token).await.expect(200);
    let done =
        app.post(path, &token, change("copper lantern on the quay", "eleven quiet herons at dusk")).await;
    assert_eq!(done.expect(200)["signed_out"], true);
    app.get("/dashboard/me", &token).await.expect_error(401, "invalid_api_key");
    sign_in
        .attempt(&email, "eleven quiet herons at dusk".to_owned(), None, address, "Firefox")
        .await
        .unwrap();
}
