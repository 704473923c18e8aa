//! Tests of the business profile: its values, and whether the business is open.

use crate::full;
use business::{BusinessPatch, BusinessProfile, Calendar, Retention};
use model::{Code, Env, MemberRole, Result, Timestamp, WorkspaceId};
use ports::{BusinessCalendar, BusinessRetention, KeptDays, Opening};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

async fn set(app: &TestApp, workspace: WorkspaceId, fields: Value) -> Result<BusinessProfile> {
    let patch: BusinessPatch = input::read_json(fields, "", "body")?;
    app.db().write(move |tx| business::set(tx, workspace, patch.clone())).await
}

#[testkit::both]
async fn a_profile_is_shown_as_it_was_set(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let fresh = app.get("/business", &key).await.expect(200);
    assert_eq!(
        fresh,
        json!({
            "object": "business", "name": "Workspace 0", "legal_name": null, "description": null, "vertical": null,
            "time_zone": "UTC", "currency": null, "locale": null, "country": null, "address": null, "email": null,
            "phone": null, "website": null, "hours": [], "holidays": [], "is_open_now": null, "next_open_at": null,
            "retention": { "messages_days": null, "files_days": null }, "updated_at": null,
        })
    );
    let profile = json!({
        "name": " Casa Nordica ", "legal_name": "Casa Nordica S.L.", "description": "Toys.", "vertical": "retail",
        "time_zone": "Europe/Madrid", "currency": "EUR", "locale": "es-ES", "country": "ES",
        "address": "Calle Mayor 12", "email": "hello@example.com", "phone": "911 23 45 67",
        "website": "https://example.com", "hours": [{ "day": "monday", "open": "09:00", "close": "24:00" }],
        "holidays": [{ "date": "2026-12-25", "yearly": true }],
    });
    set(&app, key.workspace, profile).await.unwrap();
    let shown = app.get("/business", &key).await.expect(200);
    assert_eq!((&shown["name"], &shown["phone"]), (&json!("Casa Nordica"), &json!("+34911234567")));
    assert_eq!(shown["hours"], json!([{ "day": "monday", "open": "09:00", "close": "24:00" }]));
    assert_eq!(shown["holidays"], json!([{ "date": "2026-12-25", "name": null, "yearly": true }]));
    // Absent fields stay unchanged, and `null` removes a value.
    let changed =
        set(&app, key.workspace, json!({ "name": null, "hours": null, "currency": "USD" })).await.unwrap();
    assert_eq!((changed.name.as_str(), changed.currency.as_deref()), ("Workspace 0", Some("USD")));
    assert_eq!((changed.legal_name.as_deref(), changed.is_open_now), (Some("Casa Nordica S.L."), None));
    let stranger = full(&app).await;
    assert_eq!(app.get("/business", &stranger).await.expect(200)["currency"], Value::Null);
}

#[testkit::both]
async fn how_long_is_kept_what_was_written(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    for (change, messages, files) in [
        (json!({ "retention": { "messages_days": 3650, "files_days": 1 } }), json!(3650), json!(1)),
        // Absent fields stay unchanged, and `null` keeps messages or files forever.
        (json!({ "retention": { "files_days": 30 } }), json!(3650), json!(30)),
        (json!({ "name": "Casa Nordica" }), json!(3650), json!(30)),
        (json!({ "retention": { "messages_days": null } }), Value::Null, json!(30)),
        (json!({ "retention": null }), Value::Null, Value::Null),
    ] {
        set(&app, key.workspace, change.clone()).await.unwrap();
        let shown = app.get("/business", &key).await.expect(200);
        assert_eq!(shown["retention"], json!({ "messages_days": messages, "files_days": files }), "{change}");
    }
    // Only workspaces with a retention period are returned.
    let others = [full(&app).await.workspace, full(&app).await.workspace];
    set(&app, others[0], json!({ "name": "Casa Nordica" })).await.unwrap();
    set(&app, others[1], json!({ "retention": { "messages_days": 7 } })).await.unwrap();
    let next = async |after| app.db().read(move |read| Retention.next(read, after)).await.unwrap();
    let expected = KeptDays { workspace: others[1], messages: Some(7), files: None };
    assert_eq!((next(WorkspaceId(0)).await, next(others[1]).await), (Some(expected), None));
}

#[testkit::both]
async fn whether_it_is_open_follows_the_clock(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let hours = json!([
        { "day": "friday", "open": "20:00", "close": "02:00" }, { "day": "saturday", "open": "09:00", "close": "13:00" },
    ]);
    set(&app, key.workspace, json!({ "time_zone": "Europe/Madrid", "hours": hours })).await.unwrap();
    for (now, is_open, next) in [
        ("2026-01-16T18:59:59.999Z", false, json!("2026-01-16T19:00:00.000Z")),
        ("2026-01-16T19:00:00.000Z", true, Value::Null),
        ("2026-01-17T00:59:59.999Z", true, Value::Null),
        ("2026-01-17T01:00:00.000Z", false, json!("2026-01-17T08:00:00.000Z")),
        ("2026-01-17T12:00:00.000Z", false, json!("2026-01-23T19:00:00.000Z")),
    ] {
        let at = Timestamp::parse(now).unwrap();
        let ahead = at.millis() - app.db().now().millis();
        app.data.clock.advance(chrono::Duration::milliseconds(ahead));
        let shown = app.get("/business", &key).await.expect(200);
        assert_eq!((&shown["is_open_now"], &shown["next_open_at"]), (&json!(is_open), &next), "{now}");
        let workspace = key.workspace;
        let read = app.db().read(move |read| {
            Ok((Calendar.time_zone(read, workspace)?, Calendar.opening(read, workspace, at)?))
        });
        let (zone, opening) = read.await.unwrap();
        assert_eq!((zone.name(), opening == Some(Opening::Open)), ("Europe/Madrid", is_open));
    }
}

#[testkit::both]
async fn what_a_profile_cannot_be_is_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = full(&app).await.workspace;
    let hours = |list: &[(&str, &str, &str)]| {
        let all = list.iter().map(|(day, open, close)| json!({ "day": day, "open": open, "close": close }));
        json!({ "hours": all.collect::<Vec<_>>() })
    };
    for (fields, param) in [
        (json!({ "name": " " }), "name"),
        (json!({ "time_zone": "Europe/Nowhere" }), "time_zone"),
        (json!({ "currency": "euro" }), "currency"),
        (json!({ "locale": "Spanish" }), "locale"),
        (json!({ "country": "XX" }), "country"),
        (json!({ "country": "es" }), "country"),
        (json!({ "email": "nobody" }), "email"),
        (json!({ "website": "example.com" }), "website"),
        (json!({ "phone": "911 23 45 67" }), "phone"),
        (json!({ "vertical": "piracy" }), "vertical"),
        (json!({ "timezone": "UTC" }), "timezone"),
        (json!({ "retention": { "messages_days": 0 } }), "retention.messages_days"),
        (json!({ "retention": { "files_days": 3651 } }), "retention.files_days"),
        (json!({ "retention": { "files_days": "30" } }), "retention.files_days"),
        (json!({ "retention": { "days": 30 } }), "retention.days"),
        (hours(&[("monday", "9:00", "18:00")]), "hours[0].open"),
        (hours(&[("mon", "09:00", "18:00")]), "hours[0].day"),
        (hours(&[("monday", "09:00", "09:00")]), "hours[0]"),
        (hours(&[("monday", "24:00", "02:00")]), "hours[0]"),
        (
            hours(&[
                ("monday", "00:00", "02:00"),
                ("tuesday", "09:00", "18:00"),
                ("sunday", "22:00", "01:00"),
            ]),
            "hours[2]",
        ),
        (
            json!({ "hours": vec![json!({ "day": "monday", "open": "09:00", "close": "10:00" }); 71] }),
            "hours",
        ),
        (json!({ "holidays": [{ "date": "2026-02-30" }] }), "holidays[0].date"),
        (json!({ "holidays": [{ "date": "2026-12-25" }, { "date": "2026-12-25" }] }), "holidays[1].date"),
        (json!({ "holidays": [{ "date": "2026-12-25", "name": "" }] }), "holidays[0].name"),
    ] {
        let error = set(&app, workspace, fields.clone()).await.unwrap_err();
        assert_eq!((error.code(), error.param_name()), (Code::ValidationError, Some(param)), "{fields}");
    }
    // A refused change leaves the profile unset.
    let key = app.key(workspace, model::Env::Live, &["runs:read"]).await;
    assert_eq!(app.get("/business", &key).await.expect(200)["updated_at"], Value::Null);
}

#[testkit::both]
async fn verticals_are_the_values_of_a_profile(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let verticals = app.get("/business/verticals", &key).await.expect(200);
    let verticals = verticals.as_array().unwrap();
    assert!(verticals.len() > 10);
    for vertical in verticals {
        let set = set(&app, key.workspace, json!({ "vertical": vertical["id"] })).await.unwrap();
        assert_eq!(json!(set.vertical), vertical["id"]);
    }
}

#[testkit::both]
async fn an_admin_changes_the_profile(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    let admin = app.member(workspace, MemberRole::Admin).await;
    let token = app.token(&admin, Env::Live);
    let hours = json!([{ "day": "monday", "open": "09:00", "close": "18:00" }]);
    let patch = json!({ "name": "Toy Shop", "time_zone": "Europe/Madrid", "country": "ES", "phone": "911234567", "hours": hours });
    let changed = app.patch("/dashboard/business", &token, patch).await.expect(200);
    assert_eq!((&changed["name"], &changed["phone"]), (&json!("Toy Shop"), &json!("+34911234567")));
    let cleared =
        app.patch("/dashboard/business", &token, json!({ "phone": null, "hours": [] })).await.expect(200);
    assert_eq!(
        (&cleared["phone"], &cleared["hours"], &cleared["country"]),
        (&Value::Null, &json!([]), &json!("ES"))
    );
    for (wrong, param) in [
        (json!({ "time_zone": "Mars/Base" }), "time_zone"),
        (json!({ "email": "nobody" }), "email"),
        (json!({ "hours": [{ "day": "monday", "open": "25:00", "close": "18:00" }] }), "hours[0].open"),
        (json!({ "retention": { "messages_days": 0 } }), "retention.messages_days"),
        (json!({ "surprise": 1 }), "surprise"),
    ] {
        let refused = app.patch("/dashboard/business", &token, wrong.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{wrong}");
    }
    let agent = app.member(workspace, MemberRole::Agent).await;
    let refused =
        app.patch("/dashboard/business", &app.token(&agent, Env::Live), json!({ "name": "Mine" })).await;
    refused.expect_error(403, "missing_scope");
}
