//! Connected apps: the list, and one click that ends them.

use crate::browser::Browser;
use crate::oauth::bed::{Bed, REDIRECT, sign_in};
use business::team::{self, Editor, MemberPatch};
use chrono::TimeDelta;
use model::{Env, MemberRole};
use serde_json::json;
use testkit::Kind;

fn browser(bed: &Bed, cookie: &str) -> Browser {
    let mut browser = Browser::new(&bed.app);
    let (name, value) = cookie.split_once('=').unwrap();
    browser.cookies.insert(name.to_owned(), value.to_owned());
    browser
}

#[testkit::both]
async fn an_app_is_listed_and_ends_with_one_click(kind: Kind) {
    let bed = Bed::new(kind).await;
    let client = bed.public_client(&[REDIRECT]).await;
    let code = bed.code(&Bed::query(&client, &[])).await;
    let tokens = bed.exchange(&client, REDIRECT, &code).await.body;
    assert_eq!(bed.contacts(&tokens["access_token"]).await, 200);

    let mut owner = browser(&bed, &bed.cookie);
    let page = owner.get("/apps").await;
    page.expect(200)
        .expect_text("<h2>Desk</h2>")
        .expect_text("Workspace 0")
        .expect_text("Read your contacts");
    let (_, rest) = page.text.split_once("name=\"key\" value=\"").unwrap();
    let key = rest.split('"').next().unwrap();

    // Another owner of the workspace has not authorized it, so it is not on the page of hers and not hers to end there.
    let other = bed.app.member(bed.workspace, MemberRole::Owner).await;
    let mut other = browser(&bed, &sign_in(&bed.app, &other).await);
    other.get("/apps").await.expect(200).expect_text("No app is connected.");
    other.fill("/apps", "/apps", &[("key", key)]).await.expect(404);
    assert_eq!(bed.contacts(&tokens["access_token"]).await, 200);

    owner.fill("/apps", "/apps", &[("key", key)]).await.expect_redirect("/apps?done=1");
    assert_eq!(bed.contacts(&tokens["access_token"]).await, 401);
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", client.as_str()),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
    ];
    assert_eq!(bed.program("/oauth/token", &fields).await.status, 400);
    owner
        .get("/apps?done=1")
        .await
        .expect(200)
        .expect_text("has no access any more")
        .expect_text("No app is connected.");
    owner.fill("/apps", "/apps", &[("key", key)]).await.expect(404);
}

#[testkit::both]
async fn an_app_ends_with_the_rights_of_who_authorized_it(kind: Kind) {
    for role in [None, Some(MemberRole::Viewer)] {
        let bed = Bed::new(kind).await;
        bed.app.member(bed.workspace, MemberRole::Owner).await;
        let client = bed.public_client(&[REDIRECT]).await;
        let code = bed.code(&Bed::query(&client, &[])).await;
        let tokens = bed.exchange(&client, REDIRECT, &code).await.body;
        let (workspace, member) = (bed.workspace, bed.owner.session.member);
        let change = bed.app.db().write(move |tx| {
            let by = Editor::command_line("test");
            match role {
                Some(_) => {
                    let patch = MemberPatch { role, ..MemberPatch::default() };
                    team::set(tx, workspace, member, patch, &by).map(drop)
                }
                None => team::remove(tx, workspace, member, &by),
            }
        });
        change.await.unwrap();
        bed.app.data.clock.advance(TimeDelta::seconds(10));
        assert_eq!(bed.contacts(&tokens["access_token"]).await, 401);
        bed.app.deliver().await;
        let reader = bed.app.key(workspace, Env::Live, &["events:read"]).await;
        let events = bed.app.get("/events?type=app.authorization.revoked", &reader).await;
        let events = events.expect(200);
        let [event] = events.as_array().unwrap().as_slice() else { panic!("{events}") };
        let data = &event["data"];
        assert_eq!((&data["reason"], &data["name"]), (&json!("member_changed"), &json!("Desk")));
        assert_eq!(data["authorization_ended"], true);
    }
}
