//! The routes to upload and download files.

use super::{answer, authorize, refuse};
use crate::world::{File, Refused, Shared, World, address_expires};
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Bytes, Data, Path, Query};
use actix_web::{HttpRequest, HttpResponse};
use futures::stream;
use model::Clock;
use multer::Multipart;
use ring::digest;
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;

/// A form with a file.
pub(super) struct Form {
    pub(super) file: Bytes,
    pub(super) mime_type: String,
    pub(super) fields: Vec<(String, String)>,
}

impl Form {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

pub(super) async fn read_form(request: &HttpRequest, body: Bytes) -> Result<Form, String> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(kind).map_err(|error| error.to_string())?;
    let body = stream::once(std::future::ready(Ok::<_, Infallible>(body)));
    let mut parts = Multipart::new(body, boundary);
    let mut form = Form { file: Bytes::new(), mime_type: String::new(), fields: Vec::new() };
    while let Some(part) = parts.next_field().await.map_err(|error| error.to_string())? {
        let name = part.name().unwrap_or_default().to_owned();
        if name == "file" {
            form.mime_type = part.content_type().map(ToString::to_string).unwrap_or_default();
            form.file = part.bytes().await.map_err(|error| error.to_string())?;
        } else {
            form.fields.push((name, part.text().await.map_err(|error| error.to_string())?));
        }
    }
    Ok(form)
}

pub(super) async fn upload(
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
    let form = match read_form(&request, body).await {
        Ok(form) => form,
        Err(error) => return refuse(&Refused::new(100, error)),
    };
    if form.field("messaging_product") != Some("whatsapp") {
        return refuse(&Refused::new(100, "The parameter messaging_product is required."));
    }
    let stored = shared.change(|world| {
        let id = world.numeric_id().to_string();
        let now = world.now();
        let mime_type = form.field("type").unwrap_or(&form.mime_type);
        world.files.upload(id.clone(), mime_type, form.file.clone(), now).map(|()| id)
    });
    match stored {
        Ok(id) => answer(200, &json!({ "id": id })),
        Err(refused) => refuse(&refused),
    }
}

/// Returns the URL and the properties of a file.
pub(super) fn describe(world: &mut World, origin: &str, id: &str) -> Result<Value, Refused> {
    let now = world.now();
    let file = world.files.get(id, now).ok_or_else(|| Refused::missing(id))?;
    let hash = digest::digest(&digest::SHA256, &file.content);
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(json!({
        "messaging_product": "whatsapp",
        "url": format!("{origin}/files/{id}?expires={}", address_expires(now)),
        "mime_type": stated_type(world, file),
        "sha256": hash,
        "file_size": file.content.len(),
        "id": id,
    }))
}

fn stated_type(world: &World, file: &File) -> String {
    world.faults.media.wrong_mime.clone().unwrap_or_else(|| file.mime_type.clone())
}

#[derive(Deserialize)]
pub(super) struct Address {
    #[serde(default)]
    expires: i64,
}

pub(super) async fn read(
    shared: Data<Shared>,
    id: Path<String>,
    address: Query<Address>,
    request: HttpRequest,
) -> HttpResponse {
    let gone = || HttpResponse::NotFound().content_type("text/plain").body("not found");
    let (file, mime_type, slow) = {
        let mut world = shared.lock();
        if authorize(&world, request.headers(), |_| true, &id).is_err() {
            return HttpResponse::Unauthorized().content_type("text/plain").body("unauthorized");
        }
        if world.faults.media.not_found > 0 {
            world.faults.media.not_found -= 1;
            return gone();
        }
        let now = shared.clock.now();
        if now.seconds() >= address.expires {
            return gone();
        }
        let Some(file) = world.files.get(&id, now).cloned() else { return gone() };
        let mime_type = stated_type(&world, &file);
        (file, mime_type, Duration::from_millis(world.faults.media.slow_ms))
    };
    let mut response = HttpResponse::Ok();
    response.content_type(mime_type);
    if slow.is_zero() {
        return response.body(file.content);
    }
    let mut first = file.content;
    let second = first.split_off(first.len() / 2);
    let parts = stream::unfold(vec![second, first], move |mut left| async move {
        let part = left.pop()?;
        if left.is_empty() {
            tokio::time::sleep(slow).await;
        }
        Some((Ok::<_, Infallible>(part), left))
    });
    response.streaming(parts)
}
