//! Interfaces below `/api/v1` with a format of their own, which implement [`Mount`].

use crate::BASE;
use crate::raw::{head, refusal, to_http};
use crate::rest::{check_header_size, content_length, read_body};
use actix_web::web::{self, Payload};
use actix_web::{HttpRequest, Resource};
use futures::FutureExt;
use model::Error;
use operation::{Mount, Opened, RawAnswer, body_too_large};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Returns the route of a mount, for all methods.
pub(crate) fn resource(mount: &Arc<dyn Mount>) -> Resource {
    let mount = mount.clone();
    web::resource(format!("{BASE}{}", mount.path())).default_service(web::to(
        move |request: HttpRequest, payload: Payload| {
            let mount = mount.clone();
            async move {
                // The panic hook has logged the message.
                let answer = AssertUnwindSafe(answer(&request, payload, mount)).catch_unwind().await;
                to_http(answer.unwrap_or_else(|_| refusal(&Error::internal("a panic"))))
            }
        },
    ))
}

async fn answer(request: &HttpRequest, payload: Payload, mount: Arc<dyn Mount>) -> RawAnswer {
    if let Err(error) = check_header_size(request.headers()) {
        return refusal(&error);
    }
    let Opened { body_limit, answer } = match mount.open(head(request, BASE)).await {
        Ok(opened) => opened,
        Err(refused) => return refused,
    };
    let announced = content_length(request.headers());
    let is_too_large = announced.is_some_and(|announced| announced > body_limit as u64);
    let body = if is_too_large {
        Err(body_too_large(body_limit))
    } else {
        read_body(payload, announced, body_limit).await
    };
    answer(body).await
}
