//! Who has a conversation open in the dashboard.

use crate::support::Desk;
use chrono::Duration;
use model::{Env, MemberRole};
use serde_json::{Value, json};
use simulator::User;
use testkit::{Key, Kind, Member};

/// A conversation in which two members of the team are.
struct Office {
    desk: Desk,
    ana: User,
    contact: Value,
    path: String,
    members: [Member; 2],
    tokens: [Key; 2],
}

impl Office {
    async fn open(kind: Kind) -> Self {
        let desk = Desk::open(kind).await;
        let ana = desk.customer("Ana", "+5511987654321");
        desk.hear(&ana, "Hello").await;
        let conversation = desk.get("/conversations").await.expect(200)[0].clone();
        let marta = desk.app.member(desk.workspace, MemberRole::Admin).await;
        let luis = desk.app.member(desk.workspace, MemberRole::Viewer).await;
        let tokens = [desk.app.token(&marta, Env::Live), desk.app.token(&luis, Env::Live)];
        Self {
            path: format!("/dashboard/conversations/{}/viewer", conversation["id"]),
            contact: conversation["contact_id"].clone(),
            ana,
            members: [marta, luis],
            tokens,
            desk,
        }
    }

    /// Reports that a member has the conversation open. Returns the others.
    async fn report(&self, member: usize, is_writing: bool) -> Value {
        let body = json!({ "is_writing": is_writing });
        let answer = self.desk.app.put(&self.path, &self.tokens[member], body).await.expect(200);
        answer["viewers"].clone()
    }

    async fn kept(&self) -> i64 {
        self.desk.count("SELECT count(*) AS n FROM conversation_viewers").await
    }
}

#[testkit::both]
async fn members_see_who_else_has_a_conversation_open_and_writes(kind: Kind) {
    let office = Office::open(kind).await;
    let [marta, luis] = &office.members;
    assert_eq!(office.report(0, false).await, json!([]));
    let others = office.report(1, true).await;
    let (id, now) = (&others[0]["member_id"], &others[0]["seen_at"]);
    assert_eq!((id, now), (&json!(marta.session.member), &json!(office.desk.app.db().now())), "{others}");
    assert_eq!(others[0]["is_writing"], false);
    let others = office.report(0, false).await;
    assert_eq!(
        (&others[0]["member_id"], &others[0]["is_writing"]),
        (&json!(luis.session.member), &json!(true))
    );
    assert_eq!(others.as_array().unwrap().len(), 1);
    // Luis stops writing, and leaves.
    office.report(1, false).await;
    assert_eq!(office.report(0, false).await[0]["is_writing"], false);
    office.desk.app.delete(&office.path, &office.tokens[1]).await.expect(200);
    assert_eq!(office.report(0, false).await, json!([]));
}

#[testkit::both]
async fn a_page_that_reports_no_more_counts_no_more(kind: Kind) {
    let office = Office::open(kind).await;
    office.report(0, true).await;
    office.desk.app.data.clock.advance(Duration::seconds(45));
    assert_eq!(office.report(1, false).await.as_array().unwrap().len(), 1);
    office.desk.app.data.clock.advance(Duration::seconds(1));
    assert_eq!(office.report(1, false).await, json!([]));
    assert_eq!(office.kept().await, 1);
}

#[testkit::both]
async fn conversations_of_others_have_no_viewers_and_deleted_ones_leave_none(kind: Kind) {
    let office = Office::open(kind).await;
    let app = &office.desk.app;
    office.report(0, false).await;
    let other = app.bare_workspace("scale", 0).await;
    let stranger = app.token(&app.member(other, MemberRole::Owner).await, Env::Live);
    app.put(&office.path, &stranger, json!({})).await.expect_error(404, "not_found");
    app.delete(&office.path, &stranger).await.expect_error(404, "not_found");
    app.put(&office.path, &office.desk.key, json!({})).await.expect_error(401, "session_required");
    assert_eq!(office.kept().await, 1);
    // Somebody looks while the contact is erased.
    office.desk.erase(&office.contact).await;
    assert_eq!(office.kept().await, 0);
    app.put(&office.path, &office.tokens[0], json!({})).await.expect_error(404, "not_found");
    office.desk.hear(&office.ana, "It is me").await;
}

#[testkit::both]
async fn a_conversation_that_somebody_has_open_is_merged_into_another(kind: Kind) {
    let office = Office::open(kind).await;
    let desk = &office.desk;
    office.report(0, true).await;
    let same = desk.customer("Ana", "+5511912345678");
    desk.hear(&same, "My new number").await;
    let contacts = desk.get("/contacts").await.expect(200);
    let other = contacts.as_array().unwrap().iter().find(|one| one["id"] != office.contact).unwrap();
    let body = json!({ "source_id": office.contact });
    desk.post(&format!("/contacts/{}/merge", other["id"]), body).await.expect(200);
    assert_eq!(office.kept().await, 0);
    desk.app.put(&office.path, &office.tokens[0], json!({})).await.expect_error(404, "not_found");
}
