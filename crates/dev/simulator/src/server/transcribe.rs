//! A transcription endpoint like that of OpenAI-compatible servers. It returns the words in the simulator's own voice
//! notes.

use super::answer;
use super::files::read_form;
use crate::ogg;
use crate::world::Shared;
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use model::Clock;
use serde_json::json;
use std::time::Duration;

/// Poll interval, because a base clock that the test moves sends no notification.
const LOOK: Duration = Duration::from_millis(10);

pub(super) async fn transcribe(shared: Data<Shared>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let wrong = |message: &str| {
        answer(400, &json!({ "error": { "message": message, "type": "invalid_request_error" } }))
    };
    let form = match read_form(&request, body).await {
        Ok(form) => form,
        Err(error) => return wrong(&error),
    };
    if form.field("model").is_none_or(str::is_empty) {
        return wrong("you must provide a model parameter");
    }
    let (fails, delay) = shared.change(|world| {
        let faults = &mut world.faults;
        let fails = faults.transcription_failures > 0;
        faults.transcription_failures = faults.transcription_failures.saturating_sub(1);
        (fails, i64::try_from(faults.transcription_delay_ms).unwrap_or(i64::MAX))
    });
    let ready = shared.clock.now().plus(chrono::Duration::milliseconds(delay));
    let mut moves = shared.clock.moves();
    while shared.clock.now() < ready {
        // Notification or timeout: check the clock again.
        let _ = tokio::time::timeout(LOOK, moves.changed()).await;
    }
    if fails {
        return answer(500, &json!({ "error": { "message": "a fault", "type": "server_error" } }));
    }
    let Some(words) = ogg::words(&form.file) else {
        return wrong("The file is not one of the simulator's voice notes.");
    };
    match form.field("response_format") {
        Some("text") => HttpResponse::Ok().content_type("text/plain; charset=utf-8").body(words),
        _ => answer(200, &json!({ "text": words })),
    }
}
