//! A disk without room: what writes is refused, what reads works, and nothing needs to be restarted.

use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp, until};

/// The tables that find no room.
const TABLES: [&str; 2] = ["agents", "room_trials"];

/// Lets the database refuse new rows as it does when its disk is full.
async fn fill(app: &TestApp, kind: Kind) {
    if kind == Kind::Postgres {
        app.sql(
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                RAISE EXCEPTION 'could not extend file \"base/5/16384\": No space left on device'
                    USING ERRCODE = 'disk_full', HINT = 'Check free disk space.';
            END $$",
        )
        .await;
    }
    for table in TABLES {
        let body = match kind {
            Kind::Postgres => "FOR EACH ROW EXECUTE FUNCTION no_room()",
            Kind::Sqlite => "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END",
        };
        app.sql(format!("CREATE TRIGGER no_room_{table} BEFORE INSERT ON {table} {body}")).await;
    }
}

async fn make_room(app: &TestApp, kind: Kind) {
    for table in TABLES {
        let of_table = if kind == Kind::Postgres { format!(" ON {table}") } else { String::new() };
        app.sql(format!("DROP TRIGGER no_room_{table}{of_table}")).await;
    }
}

async fn ready(app: &TestApp, status: u16) -> Value {
    // An answer is given to others for a second.
    until("the readiness changes", async || {
        let answer = app.ask_beside("GET", "/ready").send().await;
        (answer.status == status).then_some(answer.body)
    })
    .await
}

async fn create(app: &TestApp, key: &Key) -> Answer {
    let agent = json!({ "name": "Assistant" });
    app.ask("POST", "/agents").key(key).header("idempotency-key", "one").json(&agent).send().await
}

#[testkit::both]
async fn writing_is_refused_and_resumes_when_there_is_room(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    let key = app.key(workspace, model::Env::Live, &["*"]).await;
    assert_eq!(ready(&app, 200).await, json!({ "status": "ready" }));
    fill(&app, kind).await;
    for _ in 0..2 {
        let refused = create(&app, &key).await;
        refused.expect_error(503, "storage_full");
        assert_eq!(refused.headers["retry-after"], "30");
    }
    assert_eq!(ready(&app, 503).await, json!({ "status": "not_ready", "reason": "storage_full" }));
    assert_eq!(app.get("/agents", &key).await.expect(200), json!([]));
    make_room(&app, kind).await;
    ready(&app, 200).await;
    // The same request, with its key.
    create(&app, &key).await.expect(201);
}
