//! Whoever is signed out, demoted or removed is refused within ten seconds, on every replica.

use auth::RateWindows;
use auth::keys::{self, KeyKind};
use chrono::Duration;
use model::{Env, MemberRole};
use serde_json::json;
use store::Tx;
use testkit::{Key, Kind, Member, Script, TestApp};

/// Executes a change without clearing the caches of any replica.
async fn quietly(app: &TestApp, change: impl Fn(&mut Tx) -> model::Result<()> + Send + 'static) {
    app.db().write(change).await.unwrap();
}

async fn quiet_sql(app: &TestApp, statement: String) {
    use diesel::RunQueryDsl;
    quietly(app, move |tx| Ok(diesel::sql_query(&statement).execute(tx.connection()).map(drop)?)).await;
}

/// What ends the sessions of a member: a statement, or the code of keys.
async fn end(app: &TestApp, how: &str, member: &Member) {
    let (account, session) = (&member.session.account, &member.session.session);
    let (workspace, id) = (member.workspace, member.session.member);
    let now = "created_at";
    match how {
        "signed out" => {
            quiet_sql(app, format!("UPDATE sessions SET revoked_at = {now} WHERE id = '{session}'")).await;
        }
        "session deleted" => quiet_sql(app, format!("DELETE FROM sessions WHERE id = '{session}'")).await,
        "idle" => {
            let long_ago = "last_seen_at = '2020-01-01 00:00:00.000'";
            quiet_sql(app, format!("UPDATE sessions SET {long_ago} WHERE id = '{session}'")).await;
        }
        "over" => {
            quiet_sql(app, format!("UPDATE sessions SET ends_at = {now} WHERE id = '{session}'")).await;
        }
        "disabled" => {
            quiet_sql(app, format!("UPDATE accounts SET disabled_at = {now} WHERE id = '{account}'")).await;
        }
        "removed" => {
            quiet_sql(app, format!("DELETE FROM memberships WHERE account_id = '{account}'")).await;
            quietly(app, move |tx| keys::revoke_of_member(tx, workspace, id, &[KeyKind::Member]).map(drop))
                .await;
        }
        other => panic!("{other}"),
    }
}

#[testkit::both]
async fn who_is_out_is_refused_within_ten_seconds_on_every_replica(kind: Kind) {
    let app = TestApp::new(kind).await;
    let replica = app.replica(RateWindows::local()).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    for how in ["signed out", "session deleted", "idle", "over", "disabled", "removed"] {
        let member = app.member(workspace, MemberRole::Manager).await;
        let token = app.token(&member, Env::Live);
        for one in [&app, &replica] {
            one.get("/me", &token).await.expect(200);
        }
        end(&app, how, &member).await;
        // Nothing is read until the caches end, so this is the answer of before.
        app.get("/me", &token).await.expect(200);
        app.data.clock.advance(Duration::seconds(10));
        for one in [&app, &replica] {
            let answer = one.get("/me", &token).await;
            assert_eq!(answer.status, 401, "{how}: {}", answer.text);
            answer.expect_error(401, "invalid_api_key");
        }
        // A new token does not help.
        app.get("/me", &app.token(&member, Env::Live)).await.expect_error(401, "invalid_api_key");
    }
}

#[testkit::both]
async fn who_is_demoted_loses_the_scopes_within_ten_seconds_on_every_replica(kind: Kind) {
    let app = TestApp::new(kind).await;
    let replica = app.replica(RateWindows::local()).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let member = app.member(workspace, MemberRole::Manager).await;
    let token = app.token(&member, Env::Live);
    let ask = async |app: &TestApp| app.post("/contacts", &token, json!({})).await;
    for one in [&app, &replica] {
        ask(one).await.expect_error(400, "validation_error");
    }
    let id = member.session.member;
    quietly(&app, move |tx| keys::set_role(tx, workspace, id, MemberRole::Viewer)).await;
    app.data.clock.advance(Duration::seconds(10));
    for one in [&app, &replica] {
        let param = ask(one).await.expect_error(403, "missing_scope");
        assert_eq!(param.as_deref(), Some("contacts:write"));
        one.get("/contacts", &token).await.expect(200);
    }
}

#[testkit::both]
async fn a_revoked_key_of_a_member_ends_its_tokens(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let member = app.member(workspace, MemberRole::Owner).await;
    let [live, test] = [Env::Live, Env::Test].map(|env| app.token(&member, env));
    let id = live.id.clone();
    quietly(&app, move |tx| keys::revoke(tx, &id).map(drop)).await;
    app.get("/me", &live).await.expect_error(401, "api_key_revoked");
    assert_eq!(app.get("/me", &test).await.expect(200)["livemode"], false);
}

#[testkit::both]
async fn a_session_that_is_used_ends_after_twelve_idle_hours(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("unlimited", 0).await;
    let member = app.member(workspace, MemberRole::Agent).await;
    app.data.clock.advance(Duration::hours(12) - Duration::milliseconds(1));
    app.get("/me", &app.token(&member, Env::Live)).await.expect(200);
    app.data.clock.advance(Duration::milliseconds(1));
    app.get("/me", &app.token(&member, Env::Live)).await.expect_error(401, "invalid_api_key");
}

#[testkit::both]
async fn a_stream_ends_with_its_session(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let member = app.member(workspace, MemberRole::Manager).await;
    let token: Key = app.token(&member, Env::Live);
    app.model.then(Script::Pieces(vec!["Hello".to_owned(), ", world".to_owned()]));
    let run = json!({ "input": "Hi", "stream": true });
    let mut stream = app.ask("POST", "/runs").key(&token).json(&run).listen().await;
    stream.until("output.delta").await;
    end(&app, "signed out", &member).await;
    app.service.pipeline.session_tokens.forget();
    let rest = stream.rest().await;
    let names: Vec<&str> = rest.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["error"]);
    assert_eq!(rest[0].data["error"]["code"], "invalid_api_key");
    app.model.release();
}
