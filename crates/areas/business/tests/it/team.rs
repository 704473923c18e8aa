//! Tests of the team: its list, the values of members, and item values that refer to members.

use crate::full;
use business::team::{
    self, Availability, AvailabilityStatus, MemberPatch, MemberRole, NewMember, TeamMember,
};
use model::{Code, Env, Error, MemberId, Patch, Result, WorkspaceId};
use ports::{OpenWork, OpenWorkDirectory, WorkType};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use store::Read;
use testkit::{Kind, TestApp};

fn member(name: &str, email: &str) -> NewMember {
    NewMember { name: name.to_owned(), email: email.to_owned(), ..NewMember::default() }
}

async fn add(app: &TestApp, workspace: WorkspaceId, new: NewMember) -> Result<TeamMember> {
    app.db().write(move |tx| team::add(tx, workspace, new.clone())).await
}

async fn set(app: &TestApp, workspace: WorkspaceId, id: MemberId, patch: MemberPatch) -> Result<TeamMember> {
    app.db()
        .write(move |tx| team::set(tx, workspace, id, patch.clone(), &team::Editor::command_line("test")))
        .await
}

fn refusal(error: &Error) -> (Code, Option<&str>) {
    (error.code(), error.param_name())
}

/// Open work of the first two members of a team.
#[derive(Debug)]
struct Work(WorkType, [i64; 2]);

impl OpenWork for Work {
    fn work_type(&self) -> WorkType {
        self.0
    }

    fn by_member(&self, _: &mut Read, _: WorkspaceId) -> Result<HashMap<MemberId, i64>> {
        Ok((1..).map(MemberId).zip(self.1).collect())
    }
}

#[testkit::both]
async fn a_team_is_listed_in_the_order_of_joining(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, stranger) = (full(&app).await, full(&app).await);
    assert_eq!(app.get("/team", &key).await.expect(200), json!([]));
    let until = app.db().now().plus_seconds(60);
    let marta = NewMember {
        role: MemberRole::Owner,
        avatar_url: Some("https://example.com/marta.jpg".to_owned()),
        availability: Availability { status: AvailabilityStatus::Away, until: Some(until) },
        capacity: Some(20),
        languages: vec!["es".to_owned(), "pt-BR".to_owned()],
        ..member(" Marta Ruiz ", "Marta@Example.com")
    };
    let marta = add(&app, key.workspace, marta).await.unwrap();
    let jonas = add(&app, key.workspace, member("Jonas", "jonas@example.com")).await.unwrap();
    // The email address is unique only within a team.
    add(&app, stranger.workspace, member("Marta", "marta@example.com")).await.unwrap();
    let listed = app.get("/team", &key).await.expect(200);
    assert_eq!(
        listed,
        json!([
            {
                "id": marta.id, "object": "team_member", "name": "Marta Ruiz", "email": "Marta@Example.com",
                "role": "owner", "avatar_url": "https://example.com/marta.jpg",
                "availability": { "status": "away", "until": until.rfc3339() }, "capacity": 20,
                "open_conversations": 0, "open_tasks": 0, "languages": ["es", "pt-BR"],
                "joined_at": marta.joined_at.rfc3339(),
            },
            {
                "id": jonas.id, "object": "team_member", "name": "Jonas", "email": "jonas@example.com",
                "role": "agent", "avatar_url": null, "availability": { "status": "online", "until": null },
                "capacity": null, "open_conversations": 0, "open_tasks": 0, "languages": [],
                "joined_at": jonas.joined_at.rfc3339(),
            },
        ])
    );
    // A member whose absence has ended is online.
    app.data.clock.advance(chrono::Duration::seconds(60));
    let online = json!({ "status": "online", "until": null });
    assert_eq!(app.get("/team", &key).await.expect(200)[0]["availability"], online);
    let (workspace, id) = (key.workspace, jonas.id);
    app.db()
        .write(move |tx| team::remove(tx, workspace, id, &team::Editor::command_line("test")))
        .await
        .unwrap();
    assert_eq!(app.get("/team", &key).await.expect(200).as_array().unwrap().len(), 1);
    let gone = app
        .db()
        .write(move |tx| team::remove(tx, workspace, id, &team::Editor::command_line("test")))
        .await
        .unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
}

#[testkit::both]
async fn what_a_member_cannot_be_is_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = full(&app).await.workspace;
    let marta = add(&app, workspace, member("Marta", "marta@example.com")).await.unwrap();
    let jonas = add(&app, workspace, member("Jonas", "jonas@example.com")).await.unwrap();
    let twin = add(&app, workspace, member("Twin", "MARTA@example.com")).await.unwrap_err();
    assert_eq!(refusal(&twin), (Code::DuplicateValue, Some("email")));
    assert_eq!(twin.body()["details"]["existing_id"], json!(marta.id));
    let until = Some(app.db().now());
    let base = || member("A", "a@example.com");
    let wrong: [(NewMember, &str); 9] = [
        (member(" ", "a@example.com"), "name"),
        (member("A\0", "a@example.com"), "name"),
        (member("A", "example.com"), "email"),
        (NewMember { avatar_url: Some("ftp://example.com".to_owned()), ..base() }, "avatar_url"),
        (NewMember { capacity: Some(0), ..base() }, "capacity"),
        (NewMember { capacity: Some(10_001), ..base() }, "capacity"),
        (NewMember { languages: vec!["es".to_owned(), "Spanish".to_owned()], ..base() }, "languages[1]"),
        (NewMember { languages: vec!["es".to_owned(); 21], ..base() }, "languages"),
        (NewMember { availability: Availability { until, ..Availability::default() }, ..base() }, "until"),
    ];
    for (new, param) in wrong {
        let error = add(&app, workspace, new).await.unwrap_err();
        assert_eq!(refusal(&error), (Code::ValidationError, Some(param)));
    }
    let taken = MemberPatch { email: Some("marta@example.com".to_owned()), ..MemberPatch::default() };
    let error = set(&app, workspace, jonas.id, taken).await.unwrap_err();
    assert_eq!(refusal(&error), (Code::DuplicateValue, Some("email")));
    let patch = MemberPatch {
        name: Some("Jonas W.".to_owned()),
        email: Some("Jonas@example.com".to_owned()),
        capacity: Patch::Set(3),
        ..MemberPatch::default()
    };
    let changed = set(&app, workspace, jonas.id, patch).await.unwrap();
    assert_eq!((changed.name.as_str(), changed.capacity), ("Jonas W.", Some(3)));
    let cleared = MemberPatch { capacity: Patch::Clear, ..MemberPatch::default() };
    let cleared = set(&app, workspace, jonas.id, cleared).await.unwrap();
    assert_eq!((cleared.email.as_str(), cleared.capacity), ("Jonas@example.com", None));
    let stranger = full(&app).await.workspace;
    let error = set(&app, stranger, jonas.id, MemberPatch::default()).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}

#[testkit::both]
async fn values_of_user_fields_are_members(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, stranger) = (full(&app).await, full(&app).await);
    let ours = add(&app, key.workspace, member("Marta", "marta@example.com")).await.unwrap().id;
    let theirs = add(&app, stranger.workspace, member("Jonas", "jonas@example.com")).await.unwrap().id;
    let fields = json!([{ "field_key": "owner", "type": "user" }, { "field_key": "note", "type": "text" }]);
    let collection = json!({ "name": "Deals", "fields": fields });
    let collection = app.post("/collections", &key, collection).await.expect(201)["id"].clone();
    let items = format!("/collections/{collection}/items");
    let item = app.post(&items, &key, json!({ "data": { "owner": [ours] } })).await.expect(201);
    assert_eq!(item["data"]["owner"], json!([ours]));
    for wrong in [json!([theirs]), json!([ours, theirs])] {
        let refused = app.post(&items, &key, json!({ "data": { "owner": wrong } })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("data.owner"));
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.ends_with(&format!("are not among the members of the team: {theirs}")), "{message}");
    }
    // A value that refers to a former member is kept, and can be written again.
    let workspace = key.workspace;
    app.db()
        .write(move |tx| team::remove(tx, workspace, ours, &team::Editor::command_line("test")))
        .await
        .unwrap();
    let path = format!("{items}/{}", item["id"]);
    let change = json!({ "data": { "owner": [ours], "note": "Signed." } });
    assert_eq!(app.patch(&path, &key, change).await.expect(200)["data"]["owner"], json!([ours]));
    app.post(&items, &key, json!({ "data": { "owner": [ours] } }))
        .await
        .expect_error(400, "validation_error");
}

#[testkit::both]
async fn open_work_is_that_of_all_groups(kind: Kind) {
    let data = testkit::TestDb::new(kind);
    let work: [Arc<dyn OpenWork>; 3] = [
        Arc::new(Work(WorkType::Tasks, [1, 2])),
        Arc::new(Work(WorkType::Tasks, [10, 20])),
        Arc::new(Work(WorkType::Conversations, [100, 200])),
    ];
    let all = OpenWorkDirectory::new(work);
    let counted = data.db.read(move |read| {
        let mut of = |work_type| all.by_member(read, WorkspaceId(1), work_type);
        Ok((of(WorkType::Tasks)?, of(WorkType::Conversations)?))
    });
    let (tasks, conversations) = counted.await.unwrap();
    assert_eq!((tasks[&MemberId(1)], tasks[&MemberId(2)]), (11, 22));
    assert_eq!((conversations[&MemberId(1)], conversations[&MemberId(2)]), (100, 200));
}

#[testkit::both]
async fn a_new_role_and_a_removal_take_effect_at_the_member_s_sessions(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = full(&app).await.workspace;
    let owner = app.member(workspace, MemberRole::Owner).await;
    let admin = app.member(workspace, MemberRole::Admin).await;
    let token = app.token(&admin, Env::Live);
    let contact = json!({ "data": { "$name": "Ana" } });
    app.post("/contacts", &token, contact.clone()).await.expect(201);
    let role = |role| MemberPatch { role: Some(role), ..MemberPatch::default() };
    set(&app, workspace, admin.session.member, role(MemberRole::Viewer)).await.unwrap();
    app.data.clock.advance(chrono::Duration::seconds(10));
    app.post("/contacts", &token, contact).await.expect_error(403, "missing_scope");
    app.get("/contacts", &token).await.expect(200);

    let remove = async |id| {
        app.db().write(move |tx| team::remove(tx, workspace, id, &team::Editor::command_line("test"))).await
    };
    remove(admin.session.member).await.unwrap();
    app.data.clock.advance(chrono::Duration::seconds(10));
    app.get("/contacts", &token).await.expect_error(401, "invalid_api_key");

    // Nobody else could sign in as an owner.
    let last = owner.session.member;
    assert_eq!(remove(last).await.unwrap_err().code(), Code::InvalidState);
    let demoted = set(&app, workspace, last, role(MemberRole::Admin)).await;
    assert_eq!(demoted.unwrap_err().code(), Code::InvalidState);
    let second = app.member(workspace, MemberRole::Owner).await;
    set(&app, workspace, last, role(MemberRole::Admin)).await.unwrap();
    assert_eq!(remove(second.session.member).await.unwrap_err().code(), Code::InvalidState);
}
