//! What is encrypted of webhook endpoints, of deleted ones too: their secrets and the headers that go along.

use crate::schema::webhook_endpoints;
use auth::reseal::{PIECE, position};
use auth::{Piece, Seal, SealedTable};
use diesel::prelude::*;
use model::{Result, WebhookEndpointId};
use store::Tx;

/// The columns.
pub(crate) const SEALED: SealedTable =
    SealedTable { table: "webhook_endpoints", columns: &["headers", "secret", "previous_secret"], reseal };

/// The seal's place of an endpoint's secrets.
pub(crate) fn place(id: &WebhookEndpointId) -> String {
    format!("webhook_endpoint:{id}")
}

/// The seal's place of the header values that go along.
pub(crate) fn headers_place(id: &WebhookEndpointId) -> String {
    format!("{}:headers", place(id))
}

fn reseal(tx: &mut Tx, seal: &Seal, after: Option<&str>) -> Result<Option<Piece>> {
    use webhook_endpoints::{headers, id, previous_secret, secret};
    let mut rows = webhook_endpoints::table
        .select((id, headers, secret, previous_secret))
        .order(id)
        .limit(PIECE)
        .into_boxed();
    if let Some(after) = position::<WebhookEndpointId>(after)? {
        rows = rows.filter(id.gt(after));
    }
    type Values = (WebhookEndpointId, String, String, Option<String>);
    let rows: Vec<Values> = rows.load(tx.connection())?;
    let Some((last, ..)) = rows.last() else { return Ok(None) };
    let mut piece = Piece::ending(last)?;
    for (endpoint, old_headers, old_secret, old_previous) in &rows {
        let random = tx.random();
        let mut reseal = |place: &str, old: &str| piece.count(seal.reseal(&SEALED, place, old, &*random));
        let row = webhook_endpoints::table.find(endpoint);
        if let Some(new) = reseal(&headers_place(endpoint), old_headers) {
            let unchanged = row.filter(headers.eq(old_headers));
            diesel::update(unchanged).set(headers.eq(new)).execute(tx.connection())?;
        }
        if let Some(new) = reseal(&place(endpoint), old_secret) {
            let unchanged = row.filter(secret.eq(old_secret));
            diesel::update(unchanged).set(secret.eq(new)).execute(tx.connection())?;
        }
        if let Some((old, new)) =
            old_previous.as_ref().and_then(|old| Some((old, reseal(&place(endpoint), old)?)))
        {
            let unchanged = row.filter(previous_secret.eq(old));
            diesel::update(unchanged).set(previous_secret.eq(new)).execute(tx.connection())?;
        }
    }
    Ok(Some(piece))
}
