//! Records for `Idempotency-Key` (see `docs/internals/secrets.md`).
//!
//! An operation with a single transaction claims the key, works and stores its response in that transaction, so no
//! other request ever sees an unfinished claim. An operation that calls external systems claims the key first, under
//! a lease with a fence, and stores the response in its last transaction. If its owner dies, another request takes
//! over the claim under a higher fence; writes under the old fence then fail.
//!
//! Stored responses are encrypted, because some of them contain a secret that is shown only once.

use crate::reseal::{PIECE, position};
use crate::schema::idempotency_keys;
use crate::seal::{Piece, Seal, SealedTable};
use diesel::prelude::*;
use model::{Code, Error, KeyId, RequestId, Result, Timestamp, text_enum};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use store::{AnyConnection, Batched, Batches, Db, Read, Tx, each};

/// Duration of a lease. After this time without renewal another request may take over the claim.
pub const LEASE_SECONDS: i64 = 30;
/// The same as a duration.
pub const LEASE: Duration = Duration::from_secs(LEASE_SECONDS.unsigned_abs());
/// How long a response is stored and repeated.
pub const KEPT_SECONDS: i64 = 24 * 3600;

/// Digest of a request. Two requests with the same fingerprint are the same request.
pub type Fingerprint = [u8; 32];

/// A request with an `Idempotency-Key`.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The lineage of the API key. Because a rotated key keeps its lineage, it also keeps its records.
    pub lineage: KeyId,
    /// The value of the header.
    pub key: String,
    /// Digest of method, path, query and body.
    pub fingerprint: Fingerprint,
    /// The id of the request.
    pub request: RequestId,
    /// Encrypts the stored response.
    pub seal: Arc<Seal>,
}

impl Ask {
    /// Returns the row of a first request.
    fn fresh_row(&self, now: Timestamp) -> RecordRow {
        RecordRow {
            lineage_id: self.lineage.clone(),
            key: self.key.clone(),
            fingerprint: self.fingerprint.to_vec(),
            request_id: self.request.to_string(),
            state: ClaimState::Claimed,
            fence: 1,
            lease_until: now.plus_seconds(LEASE_SECONDS),
            resource_id: None,
            status: None,
            body: None,
            expires_at: now.plus_seconds(KEPT_SECONDS),
        }
    }

    /// Returns the claim on that row.
    fn fresh_claim(&self) -> Claim {
        Claim {
            lineage: self.lineage.clone(),
            key: self.key.clone(),
            fence: 1,
            seal: self.seal.clone(),
            resource: None,
        }
    }

    fn outcome(&self, status: i64, stored: String, request: String) -> Result<Outcome> {
        // Responses stored by versions without encryption are plain JSON.
        let stored = if stored.starts_with('{') {
            stored
        } else {
            self.seal.open(&place(&self.lineage, &self.key), &stored)?
        };
        let (headers, body) = read_back(&stored);
        Ok(Outcome { status: u16::try_from(status).unwrap_or(200), headers, body: body.to_owned(), request })
    }
}

/// The headers that are stored with a response and repeated. All others, such as `X-Request-Id`, belong to a single
/// request.
const KEPT_HEADERS: [&str; 2] = ["etag", "location"];

/// Serializes headers, one per line, followed by the body. The body begins with a brace, which ends the headers.
fn written_down(headers: &[(&'static str, String)], body: &str) -> String {
    let mut text = String::with_capacity(body.len() + 64);
    for (name, value) in headers.iter().filter(|(name, _)| KEPT_HEADERS.contains(name)) {
        // HTTP forbids line breaks in a header value; one here would corrupt the format.
        if !value.contains(['\r', '\n']) {
            text.extend([name, ":", value, "\n"]);
        }
    }
    text.push_str(body);
    text
}

/// Parses the output of [`written_down`].
fn read_back(mut text: &str) -> (Vec<(&'static str, String)>, &str) {
    let mut headers = Vec::new();
    while !text.starts_with('{')
        && let Some((line, rest)) = text.split_once('\n')
    {
        let (name, value) = line.split_once(':').unwrap_or_default();
        headers
            .extend(KEPT_HEADERS.into_iter().find(|kept| *kept == name).map(|kept| (kept, value.to_owned())));
        text = rest;
    }
    (headers, text)
}

/// The associated data of an encrypted response: it can be decrypted only for the same key and lineage.
fn place(lineage: &KeyId, key: &str) -> String {
    format!("idempotency:{lineage}:{key}")
}

/// A claim on a key: the right to execute its request. Valid while no other claim has a higher fence.
#[derive(Debug, Clone)]
pub struct Claim {
    lineage: KeyId,
    key: String,
    fence: i64,
    seal: Arc<Seal>,
    /// The resource that an earlier owner began to create, such as a run. The new owner resumes it instead of
    /// creating another.
    pub resource: Option<String>,
}

/// A stored response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The HTTP status.
    pub status: u16,
    /// The stored headers (see `KEPT_HEADERS`).
    pub headers: Vec<(&'static str, String)>,
    /// The whole body.
    pub body: String,
    /// The id of the request that produced it.
    pub request: String,
}

/// The state of a key when a request asks for it.
#[derive(Debug, Clone)]
pub enum Known {
    /// The request has the claim: the key is new, or its previous owner died.
    Claimed(Claim),
    /// The request was executed before.
    Done(Outcome),
    /// Another request is executing it.
    InProgress,
}

text_enum! {
    /// State of a record.
    enum ClaimState {
        Claimed = "claimed",
        Done = "done",
    }
}

#[derive(Insertable, Queryable)]
#[diesel(table_name = idempotency_keys)]
struct RecordRow {
    lineage_id: KeyId,
    key: String,
    fingerprint: Vec<u8>,
    request_id: String,
    state: ClaimState,
    fence: i64,
    lease_until: Timestamp,
    resource_id: Option<String>,
    status: Option<i64>,
    body: Option<String>,
    expires_at: Timestamp,
}

/// Parses the header: bare or quoted, 1 to 255 visible ASCII characters.
///
/// # Errors
/// `validation_error` with `param` = `Idempotency-Key`.
pub fn parse_header(value: &str) -> Result<String> {
    let key = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    if key.is_empty() || key.len() > 255 || !key.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Err(Error::invalid("Idempotency-Key", "must have 1 to 255 visible ASCII characters"));
    }
    Ok(key.to_owned())
}

/// Returns the state of the key without claiming it. `None` if there is no record, or one that is expired or may be
/// taken over.
///
/// # Errors
/// `idempotency_key_reused` if another request used the value.
pub fn peek(read: &mut Read, ask: &Ask) -> Result<Option<Known>> {
    let now = read.now();
    let row: Option<RecordRow> =
        idempotency_keys::table.find((&ask.lineage, &ask.key)).first(read.connection()).optional()?;
    let Some(row) = row.filter(|row| row.expires_at > now) else { return Ok(None) };
    if row.fingerprint != ask.fingerprint {
        return Err(reused());
    }
    Ok(match (row.status, row.body) {
        (Some(status), Some(body)) => {
            // Repeat a response only once it is on disk. PostgreSQL could still lose a commit that is not flushed.
            read.await_flush();
            Some(Known::Done(ask.outcome(status, body, row.request_id)?))
        }
        _ if row.lease_until > now => Some(Known::InProgress),
        _ => None,
    })
}

fn reused() -> Error {
    Error::new(
        Code::IdempotencyKeyReused,
        "This `Idempotency-Key` was used for a different request: the method, path, query or body differs.",
    )
    .param("Idempotency-Key")
}

/// Claims keys for operations with more than one transaction. On PostgreSQL concurrent claims share one statement.
/// Cheap to clone.
#[derive(Clone, Default)]
pub struct Claims(Arc<Batches<Ask>>);

impl Claims {
    /// Claims a key in its own transaction, or returns its state.
    ///
    /// # Errors
    /// As [`claim`].
    pub async fn claim(&self, db: &Db, ask: Ask) -> Result<Known> {
        db.write_batched(&self.0, (), ask).await
    }
}

impl Batched for Ask {
    type Maker = ();
    type Output = Known;

    fn alone(&self, (): &(), tx: &mut Tx) -> Result<Known> {
        claim(tx, self)
    }

    fn together((): &(), asks: &[&Self], tx: &mut Tx) -> Result<Vec<Option<Known>>> {
        let now = tx.now();
        let rows: Vec<RecordRow> = asks.iter().map(|ask| ask.fresh_row(now)).collect();
        let AnyConnection::Postgres(connection) = tx.connection() else {
            return Ok(asks.iter().map(|_| None).collect());
        };
        let inserted: Vec<(KeyId, String)> = diesel::insert_into(idempotency_keys::table)
            .values(rows)
            .on_conflict_do_nothing()
            .returning((idempotency_keys::lineage_id, idempotency_keys::key))
            .get_results(connection)?;
        let mut inserted: HashSet<(KeyId, String)> = inserted.into_iter().collect();
        // If two requests of the batch have the same key, the first gets the claim. The other gets `None`, runs alone
        // and reads the record.
        let known = |ask: &&Self| {
            let is_ours = inserted.remove(&(ask.lineage.clone(), ask.key.clone()));
            is_ours.then(|| Known::Claimed(ask.fresh_claim()))
        };
        Ok(asks.iter().map(known).collect())
    }
}

/// Claims a key, or returns its state. If a concurrent request inserts the record first, this reads that record
/// instead of failing.
///
/// # Errors
/// `idempotency_key_reused` if another request used the value.
pub fn claim(tx: &mut Tx, ask: &Ask) -> Result<Known> {
    let now = tx.now();
    let fresh = ask.fresh_row(now);
    let inserted = each!(tx.connection(), |connection| diesel::insert_into(idempotency_keys::table)
        .values(&fresh)
        .on_conflict_do_nothing()
        .execute(connection))?;
    let mut claim = ask.fresh_claim();
    if inserted == 1 {
        return Ok(Known::Claimed(claim));
    }
    // The record exists: it is finished, in progress, abandoned or expired.
    let row: RecordRow = idempotency_keys::table.find((&ask.lineage, &ask.key)).first(tx.connection())?;
    // An expired record counts as absent. Its row is reused under a higher fence, like that of a dead owner.
    let forgotten = row.expires_at <= now;
    if !forgotten {
        if row.fingerprint != ask.fingerprint {
            return Err(reused());
        }
        if let (Some(status), Some(body)) = (row.status, row.body) {
            return Ok(Known::Done(ask.outcome(status, body, row.request_id)?));
        }
        if row.lease_until > now {
            return Ok(Known::InProgress);
        }
        claim.resource = row.resource_id;
    }
    // Compare and swap on the fence: of several requests that try to take over, only one succeeds.
    claim.fence = row.fence + 1;
    let taken = diesel::update(idempotency_keys::table.find((&ask.lineage, &ask.key)))
        .filter(idempotency_keys::fence.eq(row.fence))
        .set((
            idempotency_keys::fingerprint.eq(ask.fingerprint.to_vec()),
            idempotency_keys::request_id.eq(ask.request.as_str()),
            idempotency_keys::state.eq(ClaimState::Claimed),
            idempotency_keys::fence.eq(claim.fence),
            idempotency_keys::lease_until.eq(now.plus_seconds(LEASE_SECONDS)),
            idempotency_keys::resource_id.eq(claim.resource.as_deref()),
            idempotency_keys::status.eq(None::<i64>),
            idempotency_keys::body.eq(None::<String>),
            idempotency_keys::expires_at.eq(now.plus_seconds(KEPT_SECONDS)),
        ))
        .execute(tx.connection())?;
    Ok(if taken == 1 { Known::Claimed(claim) } else { Known::InProgress })
}

/// Records the resource that the claim's operation has begun to create, so that a request that takes over can resume
/// it.
///
/// # Errors
/// `idempotency_in_progress` if the claim was taken over.
pub fn attach(tx: &mut Tx, claim: &Claim, resource: &str) -> Result<()> {
    let held = diesel::update(idempotency_keys::table.find((&claim.lineage, &claim.key)))
        .filter(idempotency_keys::fence.eq(claim.fence))
        .set(idempotency_keys::resource_id.eq(resource))
        .execute(tx.connection())?;
    still_ours(held)
}

/// Extends the lease. Returns `false` if the claim was taken over.
///
/// # Errors
/// `internal_error`.
pub fn renew(tx: &mut Tx, claim: &Claim) -> Result<bool> {
    let until = tx.now().plus_seconds(LEASE_SECONDS);
    let held = diesel::update(idempotency_keys::table.find((&claim.lineage, &claim.key)))
        .filter(idempotency_keys::fence.eq(claim.fence))
        .set(idempotency_keys::lease_until.eq(until))
        .execute(tx.connection())?;
    Ok(held > 0)
}

/// Stores the response, in the same transaction as the operation's changes. Of `headers` only `ETag` and `Location`
/// are stored.
///
/// # Errors
/// `idempotency_in_progress` if the claim was taken over. The caller must then roll back.
pub fn finish(
    tx: &mut Tx,
    claim: &Claim,
    status: u16,
    body: &str,
    headers: &[(&'static str, String)],
) -> Result<()> {
    let expires = tx.now().plus_seconds(KEPT_SECONDS);
    let place = place(&claim.lineage, &claim.key);
    let sealed = claim.seal.seal(&SEALED, &place, &written_down(headers, body), &*tx.random())?;
    let held = diesel::update(idempotency_keys::table.find((&claim.lineage, &claim.key)))
        .filter(idempotency_keys::fence.eq(claim.fence))
        .set((
            idempotency_keys::state.eq(ClaimState::Done),
            idempotency_keys::status.eq(i64::from(status)),
            idempotency_keys::body.eq(sealed),
            idempotency_keys::expires_at.eq(expires),
        ))
        .execute(tx.connection())?;
    still_ours(held)
}

/// Removes a stored 202 response after the work behind it has failed. A retry then executes the request again and
/// finds the resource in the claim. Does nothing if the claim was taken over.
pub fn reopen(tx: &mut Tx, claim: &Claim) -> Result<()> {
    let now = tx.now();
    diesel::update(idempotency_keys::table.find((&claim.lineage, &claim.key)))
        .filter(idempotency_keys::fence.eq(claim.fence))
        .set((
            idempotency_keys::state.eq(ClaimState::Claimed),
            idempotency_keys::lease_until.eq(now),
            idempotency_keys::status.eq(None::<i64>),
            idempotency_keys::body.eq(None::<String>),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Returns the claim of a request that was answered with 202 while `resource` was in progress. Used to finish the
/// request after the server that held the claim has died.
pub fn left_open(
    read: &mut Read,
    lineage: &KeyId,
    key: &str,
    resource: &str,
    seal: &Arc<Seal>,
) -> Result<Option<Claim>> {
    let fence = idempotency_keys::table
        .find((lineage, key))
        .filter(idempotency_keys::resource_id.eq(resource))
        // Only a 202 is provisional. A final response must not be replaced.
        .filter(idempotency_keys::status.eq(202))
        .select(idempotency_keys::fence)
        .get_result(read.connection())
        .optional()?;
    Ok(fence.map(|fence| Claim {
        lineage: lineage.clone(),
        key: key.to_owned(),
        fence,
        seal: seal.clone(),
        resource: Some(resource.to_owned()),
    }))
}

/// Releases the claim, so that a retry executes. If a resource was begun, the record stays and the retry resumes it.
pub fn release(tx: &mut Tx, claim: &Claim) -> Result<()> {
    let now = tx.now();
    diesel::delete(idempotency_keys::table.find((&claim.lineage, &claim.key)))
        .filter(idempotency_keys::fence.eq(claim.fence))
        // If a resource was begun, keep the row, so that a retry resumes it.
        .filter(idempotency_keys::resource_id.is_null())
        .filter(idempotency_keys::state.eq(ClaimState::Claimed))
        .execute(tx.connection())?;
    diesel::update(idempotency_keys::table.find((&claim.lineage, &claim.key)))
        .filter(idempotency_keys::fence.eq(claim.fence))
        .filter(idempotency_keys::state.eq(ClaimState::Claimed))
        .set(idempotency_keys::lease_until.eq(now))
        .execute(tx.connection())?;
    Ok(())
}

/// The table of stored responses, for the rotation of the encryption key.
pub const SEALED: SealedTable = SealedTable { table: "idempotency_keys", columns: &["body"], reseal };

fn reseal(tx: &mut Tx, seal: &Seal, after: Option<&str>) -> Result<Option<Piece>> {
    use idempotency_keys::{body, key, lineage_id};
    let mut rows = idempotency_keys::table
        .filter(body.is_not_null())
        // Skip responses stored by versions without encryption: they are plain JSON.
        .filter(body.not_like("{%"))
        .select((lineage_id, key, body.assume_not_null()))
        .order((lineage_id, key))
        .limit(PIECE)
        .into_boxed();
    if let Some((lineage, last)) = position::<(KeyId, String)>(after)? {
        rows = rows.filter(lineage_id.gt(lineage.clone()).or(lineage_id.eq(lineage).and(key.gt(last))));
    }
    let rows: Vec<(KeyId, String, String)> = rows.load(tx.connection())?;
    let Some((lineage, last, _)) = rows.last() else { return Ok(None) };
    let mut piece = Piece::ending(&(lineage, last))?;
    for (lineage, key_text, old) in &rows {
        let place = place(lineage, key_text);
        if let Some(new) = piece.count(seal.reseal(&SEALED, &place, old, &*tx.random())) {
            // The filter skips a row that a request has replaced since it was read.
            let row = idempotency_keys::table.find((lineage, key_text)).filter(body.eq(old));
            diesel::update(row).set(body.eq(new)).execute(tx.connection())?;
        }
    }
    Ok(Some(piece))
}

/// Approximate number of records deleted per transaction, to keep lock times short.
const PURGED_AT_ONCE: i64 = 1_000;

/// Deletes some expired records and returns their number, which is zero when none are left.
pub fn purge(tx: &mut Tx) -> Result<usize> {
    let now = tx.now();
    // Deletes by time, not by key, so that one range of the index is enough. Records that share the last expiry time
    // are deleted too, so the batch may be slightly larger.
    let last: Option<Timestamp> = idempotency_keys::table
        .filter(idempotency_keys::expires_at.le(now))
        .order(idempotency_keys::expires_at.asc())
        .select(idempotency_keys::expires_at)
        .offset(PURGED_AT_ONCE - 1)
        .first(tx.connection())
        .optional()?;
    let until = last.unwrap_or(now);
    Ok(diesel::delete(idempotency_keys::table.filter(idempotency_keys::expires_at.le(until)))
        .execute(tx.connection())?)
}

fn still_ours(rows: usize) -> Result<()> {
    if rows == 1 {
        return Ok(());
    }
    Err(Error::new(Code::IdempotencyInProgress, "Another request with this `Idempotency-Key` took over.")
        .retry_after(2))
}

#[cfg(test)]
mod tests {
    use super::{parse_header, read_back, written_down};
    use proptest::prelude::*;

    #[test]
    fn headers_are_bare_or_quoted() {
        assert_eq!(parse_header("abc").unwrap(), "abc");
        assert_eq!(parse_header("\"abc\"").unwrap(), "abc");
        assert!(parse_header(&"x".repeat(255)).is_ok());
        for bad in ["", "\"\"", "a\nb", "ü", &"x".repeat(256)] {
            assert_eq!(parse_header(bad).unwrap_err().param_name(), Some("Idempotency-Key"));
        }
    }

    #[test]
    fn other_headers_are_not_kept() {
        let headers = [("x-request-id", "r".to_owned()), ("etag", "\"1\"".to_owned())];
        assert_eq!(written_down(&headers, "{}"), "etag:\"1\"\n{}");
        assert_eq!(written_down(&[("location", "a\r\nb".to_owned())], "{}"), "{}");
    }

    proptest! {
        #[test]
        fn what_is_written_down_reads_back(
            etag in proptest::option::of("[ -~]{0,20}"),
            location in proptest::option::of("[ -~]{0,20}"),
            rest in "(?s).{0,40}",
        ) {
            let etag = etag.map(|value| ("etag", value));
            let headers: Vec<_> = etag.into_iter().chain(location.map(|value| ("location", value))).collect();
            let body = format!("{{{rest}");
            let text = written_down(&headers, &body);
            prop_assert_eq!(read_back(&text), (headers, body.as_str()));
        }
    }
}
