//! Drafts of broadcasts: validation and schedules.

use crate::support::{all, open};
use serde_json::{Value, json};
use testkit::Kind;
#[testkit::both]
async fn what_is_wrong_is_named(kind: Kind) {
    let desk = open(kind).await;
    desk.contact("Ana", "+5511987650001").await;
    let template = |params: Value| json!({ "name": "sale", "language": "en", "params": params });
    for (body, code, param) in [
        (json!({ "channel_id": 999_999 }), "not_found", "channel_id"),
        (
            json!({ "template": template(json!({ "1": { "value": "{{contact.$name}}" } })) }),
            "validation_error",
            "template.params.1.fallback",
        ),
        (
            json!({ "template": template(json!({ "1": { "value": "{{vars.x}}", "fallback": "x" } })) }),
            "unknown_variable",
            "template.params.1.value",
        ),
        (
            json!({ "template": template(json!({ "1": { "value": "a\nb" } })) }),
            "validation_error",
            "template.params.1.value",
        ),
        (json!({ "audience": { "segment_id": 999_999 } }), "validation_error", "audience.segment_id"),
        (json!({ "audience": { "contact_ids": [999_999] } }), "validation_error", "audience.contact_ids[0]"),
        (
            json!({ "audience": { "exclude": { "broadcast_id": 999_999 } } }),
            "validation_error",
            "audience.exclude.broadcast_id",
        ),
        (
            json!({ "audience": { "filters": [{ "field": "$name", "value": "Ana" }, { "field": "nope", "value": "x" }] } }),
            "validation_error",
            "audience.filters[1]",
        ),
        (
            json!({ "audience": { "exclude": { "filters": [7] } } }),
            "validation_error",
            "audience.exclude.filters[0]",
        ),
        (
            json!({ "audience": { "exclude": { "filter_tree": { "field": "nope", "op": "eq", "value": 1 } } } }),
            "validation_error",
            "audience.exclude.filter_tree.field",
        ),
        (json!({ "schedule": { "time_zone": "Mars" } }), "validation_error", "schedule.time_zone"),
        (json!({ "schedule": { "contact_local_time": true } }), "validation_error", "schedule.time_zone"),
        (
            json!({ "schedule": { "time_zone": "UTC", "quiet_hours": { "from": "21:00", "to": "21:00" } } }),
            "validation_error",
            "schedule.quiet_hours.to",
        ),
        (json!({ "throttle": { "rate_per_minute": 0 } }), "validation_error", "throttle.rate_per_minute"),
        (json!({ "name": " " }), "validation_error", "name"),
    ] {
        let mut with = json!({ "name": "Sale" });
        with.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let status = if code == "not_found" { 404 } else { 400 };
        assert_eq!(
            desk.post("/broadcasts", with).await.expect_error(status, code).as_deref(),
            Some(param),
            "{body}"
        );
    }
    let audience = all();
    for (patch, status, code, param) in [
        (json!({ "template": null }), 400, "validation_error", "template"),
        (json!({ "audience": null }), 400, "validation_error", "audience"),
        (json!({ "audience": { "exclude": { "contact_ids": [] } } }), 400, "validation_error", "audience"),
        (json!({ "audience": { "contact_ids": [] } }), 400, "empty_audience", "audience"),
        (
            json!({ "schedule": { "send_at": "2026-01-15T11:00:00Z" } }),
            400,
            "validation_error",
            "schedule.send_at",
        ),
        (
            json!({ "template": template(json!({ "1": { "value": "x" } })) }),
            400,
            "template_params_mismatch",
            "template.params.2",
        ),
        (
            json!({ "template": { "name": "sale", "language": "de", "params": {} } }),
            404,
            "template_not_found",
            "template.name",
        ),
    ] {
        let id = desk.draft(audience.clone(), json!({})).await;
        desk.app.patch(&format!("/broadcasts/{id}"), &desk.key, patch.clone()).await.expect(200);
        let answer = desk.post(&format!("/broadcasts/{id}/send"), json!({})).await;
        assert_eq!(answer.expect_error(status, code).as_deref(), Some(param), "{patch}");
        assert_eq!(desk.broadcast(id).await["status"], "draft");
    }
    let id = desk.draft(audience, json!({})).await;
    let send = format!("/broadcasts/{id}/send");
    for (table, broken, fixed, code) in [
        ("message_templates", "paused", "approved", "template_not_approved"),
        ("channels", "disconnected", "connected", "channel_disconnected"),
    ] {
        desk.app.sql(format!("UPDATE {table} SET status = '{broken}'")).await;
        desk.post(&send, json!({})).await.expect_error(409, code);
        desk.app.sql(format!("UPDATE {table} SET status = '{fixed}'")).await;
    }
    desk.post(&send, json!({ "retry": "failed" })).await.expect_error(409, "invalid_state");
    desk.post(&format!("/broadcasts/{id}/pause"), json!({})).await.expect_error(409, "invalid_state");
    desk.get("/broadcasts/999999").await.expect_error(404, "not_found");
    desk.post("/broadcasts/999999/send", json!({})).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn a_schedule_is_kept_and_can_be_changed(kind: Kind) {
    let desk = open(kind).await;
    desk.contact("Ana", "+5511987650001").await;
    let later = json!({ "schedule": { "send_at": "2026-01-15T12:00:10Z" } });
    let id = desk.draft(all(), later.clone()).await;
    for _ in 0..2 {
        assert_eq!(desk.act(id, "send").await["status"], "scheduled");
    }
    let path = format!("/broadcasts/{id}");
    let draft = desk.app.patch(&path, &desk.key, json!({ "name": "Other" })).await.expect(200);
    assert_eq!((&draft["status"], &draft["name"]), (&json!("draft"), &json!("Other")));
    desk.seconds(11).await;
    assert_eq!(desk.broadcast(id).await["status"], "draft");
    let soon = json!({ "schedule": { "send_at": "2026-01-15T12:00:15Z" } });
    desk.app.patch(&path, &desk.key, soon).await.expect(200);
    assert_eq!(desk.act(id, "send").await["status"], "scheduled");
    desk.seconds(3).await;
    assert_eq!(
        (desk.broadcast(id).await["status"].clone(), desk.messages().await.len()),
        (json!("scheduled"), 0)
    );
    desk.seconds(1).await;
    assert_eq!(
        (desk.broadcast(id).await["status"].clone(), desk.messages().await.len()),
        (json!("sending"), 1)
    );
    let change = desk.app.patch(&path, &desk.key, json!({ "name": "Late" })).await;
    assert_eq!(change.expect_error(409, "invalid_state"), None);
    assert_eq!(change.body["error"]["details"]["state"], "sending");
    // Another broadcast starts at once with `now`.
    let now = desk.draft(all(), json!({ "schedule": { "send_at": "2026-01-16T12:00:00Z" } })).await;
    desk.act(now, "send").await;
    assert_eq!(
        desk.post(&format!("/broadcasts/{now}/send"), json!({ "now": true })).await.expect(200)["status"],
        "preparing"
    );
    let cancelled = desk.draft(all(), json!({ "schedule": { "send_at": "2026-01-16T12:00:00Z" } })).await;
    desk.act(cancelled, "send").await;
    for _ in 0..2 {
        assert_eq!(desk.act(cancelled, "cancel").await["status"], "cancelled");
    }
    desk.post(&format!("/broadcasts/{cancelled}/send"), json!({})).await.expect_error(409, "invalid_state");
    let events = desk.broadcast_events().await;
    assert_eq!(events.iter().filter(|kind| *kind == "broadcast.scheduled").count(), 4);
    assert_eq!(events.last().map(String::as_str), Some("broadcast.cancelled"));
}
