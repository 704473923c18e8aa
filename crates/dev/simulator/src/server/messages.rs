//! The routes to send messages and mark messages as read.

use super::{answer, authorize, refuse};
use crate::world::{Refused, SendFault, Shared, World};
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a response waits for the first status, if that is to come early.
const EARLY: Duration = Duration::from_secs(5);

pub(super) async fn post(
    shared: Data<Shared>,
    path: Path<(String, String)>,
    request: HttpRequest,
    body: Bytes,
) -> HttpResponse {
    let (_, number_id) = path.into_inner();
    let is_it = |number: &crate::world::Number| number.id == number_id;
    if let Err(refused) = authorize(&shared.lock(), request.headers(), is_it, &number_id) {
        return refuse(&refused);
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return refuse(&Refused::new(100, "The body is not JSON."));
    };
    if body.get("status").is_some() {
        return mark_read(&shared, &number_id, &body);
    }
    let (fault, is_early) = draw(&mut shared.lock());
    match fault {
        SendFault::TimeoutBefore => return silence(&shared).await,
        SendFault::GatewayError => return gateway_error(),
        SendFault::Refuse { code } => return refuse(&Refused::new(code, "A fault.")),
        SendFault::ServerError => return refuse(&Refused::new(131_000, "A fault.")),
        SendFault::RateLimited => {
            let seconds = shared.lock().faults.retry_after_seconds;
            return refuse(&Refused { retry_after: Some(seconds), ..Refused::new(130_429, "A fault.") });
        }
        SendFault::None | SendFault::TimeoutAfter | SendFault::GarbledAfter => {}
    }
    let accepted = match shared.change(|world| world.accept(&number_id, &body, is_early)) {
        Ok(accepted) => accepted,
        Err(refused) => return refuse(&refused),
    };
    if let Some(first) = accepted.first_status {
        // Respond even if the status has not been delivered.
        let _ = tokio::time::timeout(EARLY, first).await;
    }
    match fault {
        SendFault::TimeoutAfter => silence(&shared).await,
        SendFault::GarbledAfter => HttpResponse::Ok().content_type("text/html").body("<html>"),
        _ => answer(200, &accepted.answer),
    }
}

/// Draws the fault of this send, and whether its first status comes before its response.
fn draw(world: &mut World) -> (SendFault, bool) {
    let (faults, dice) = (&world.faults, &mut world.dice);
    let fault = world.next_sends.pop_front().unwrap_or_else(|| faults.of_send(dice));
    (fault, dice.hits(faults.early_status))
}

fn mark_read(shared: &Shared, number_id: &str, body: &Value) -> HttpResponse {
    let text = |key| body.get(key).and_then(Value::as_str);
    match (text("status"), text("message_id")) {
        (Some("read"), Some(id)) if id.starts_with("wamid.") => {
            shared.change(|world| world.mark(number_id, id, body.get("typing_indicator").is_some()));
            answer(200, &json!({ "success": true }))
        }
        (Some("read"), _) => refuse(&Refused::new(131_009, "The message id is not known.")),
        _ => refuse(&Refused::new(100, "The status must be read.")),
    }
}

async fn silence(shared: &Shared) -> HttpResponse {
    let wait = Duration::from_millis(shared.lock().faults.silence_ms);
    tokio::time::sleep(wait).await;
    gateway_error()
}

fn gateway_error() -> HttpResponse {
    HttpResponse::BadGateway().content_type("text/html").body("<html><h1>502 Bad Gateway</h1></html>")
}
