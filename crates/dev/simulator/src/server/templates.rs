//! The routes for templates of a business.

use super::{answer, authorize, refuse};
use crate::world::{Number, Refused, Shared};
use actix_web::web::{Bytes, Data, Path, Query};
use actix_web::{HttpRequest, HttpResponse};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
pub(super) struct Listing {
    #[serde(default)]
    fields: String,
    limit: Option<usize>,
    after: Option<u64>,
    name: Option<String>,
}

pub(super) async fn list(
    shared: Data<Shared>,
    path: Path<(String, String)>,
    query: Query<Listing>,
    request: HttpRequest,
) -> HttpResponse {
    let (version, business) = path.into_inner();
    let world = shared.lock();
    if let Err(refused) = authorize(&world, request.headers(), of(&business), &business) {
        return refuse(&refused);
    }
    let limit = query.limit.unwrap_or(25).clamp(1, 1000);
    let after = query.after.map_or(0, |after| after + 1);
    let mut rows = world
        .templates
        .by_id
        .range(after..)
        .filter(|(_, template)| query.name.as_ref().is_none_or(|name| *name == template.name));
    let page: Vec<_> = rows.by_ref().take(limit).collect();
    let mut body = json!({ "data": page.iter().map(|(_, row)| chosen(row.listed(), &query.fields)).collect::<Vec<_>>() });
    if let (Some((first, _)), Some((last, _)), Value::Object(body)) = (page.first(), page.last(), &mut body) {
        let cursors = json!({ "before": first.to_string(), "after": last.to_string() });
        let mut paging = json!({ "cursors": cursors });
        if let (Some(_), Value::Object(paging)) = (rows.next(), &mut paging) {
            let next = format!("{}/{version}/{business}/message_templates?after={last}", shared.origin);
            paging.insert("next".to_owned(), json!(next));
        }
        body.insert("paging".to_owned(), paging);
    }
    answer(200, &body)
}

fn of(business: &str) -> impl Fn(&Number) -> bool {
    move |number| number.business_id == business
}

/// Returns only the requested fields.
fn chosen(row: Value, fields: &str) -> Value {
    match row {
        Value::Object(row) if !fields.is_empty() => row
            .into_iter()
            .filter(|(key, _)| key == "id" || fields.split(',').any(|field| field == key))
            .collect(),
        row => row,
    }
}

pub(super) async fn create(
    shared: Data<Shared>,
    path: Path<(String, String)>,
    request: HttpRequest,
    body: Bytes,
) -> HttpResponse {
    let (_, business) = path.into_inner();
    if let Err(refused) = authorize(&shared.lock(), request.headers(), of(&business), &business) {
        return refuse(&refused);
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return refuse(&Refused::new(100, "The body is not JSON."));
    };
    match shared.change(|world| world.submit(&body)) {
        Ok(template) => {
            let answered = json!({ "id": template.id.to_string(), "status": template.status, "category": template.category });
            answer(200, &answered)
        }
        Err(refused) => refuse(&refused),
    }
}

#[derive(Deserialize)]
pub(super) struct Removal {
    name: String,
    hsm_id: Option<u64>,
}

pub(super) async fn delete(
    shared: Data<Shared>,
    path: Path<(String, String)>,
    query: Query<Removal>,
    request: HttpRequest,
) -> HttpResponse {
    let (_, business) = path.into_inner();
    if let Err(refused) = authorize(&shared.lock(), request.headers(), of(&business), &business) {
        return refuse(&refused);
    }
    if shared.change(|world| world.templates.remove(&query.name, query.hsm_id)) == 0 {
        let details = format!("There is no template {}.", query.name);
        return refuse(&Refused { status: 404, subcode: Some(2_593_002), ..Refused::new(100, details) });
    }
    answer(200, &json!({ "success": true }))
}
