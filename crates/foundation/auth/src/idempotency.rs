//! The memory behind `Idempotency-Key` (platform-billing.md C.4).
//!
//! An operation that is one transaction claims, works and finishes in it, so nobody ever sees a half-done claim.
//! One that speaks to the outside claims first, under a lease, and finishes with its last transaction; a claim
//! whose owner died is taken over under a higher fence, and what the dead owner still tries to write fails on it.
//!
//! Stored answers are sealed: some show a secret that is shown this once.

use crate::reseal::{PIECE, position};
use crate::schema::idempotency_keys;
use crate::seal::{Piece, Seal, SealedTable};
use diesel::prelude::*;
use model::{Code, Error, KeyId, RequestId, Result, Timestamp, text_enum};
use std::collections::HashSet;
use std::sync::Arc;
use store::{AnyConnection, Batched, Batches, Db, Read, Tx, each};

/// How long an owner may be silent before its claim can be taken over.
pub const LEASE_SECONDS: i64 = 30;
/// How long an outcome is remembered.
pub const KEPT_SECONDS: i64 = 24 * 3600;

/// What makes two requests the same one.
pub type Fingerprint = [u8; 32];

/// Who asks, and for what.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The key's lineage: rotation keeps the memory.
    pub lineage: KeyId,
    /// The header's value.
    pub key: String,
    /// Digest of method, path, query and body.
    pub fingerprint: Fingerprint,
    /// The request.
    pub request: RequestId,
    /// Seals the stored answer.
    pub seal: Arc<Seal>,
}

impl Ask {
    /// The record of a request that nobody has made before.
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

    /// The claim of that record.
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
        // Answers that were stored before there was a seal are JSON.
        let stored = if stored.starts_with('{') {
            stored
        } else {
            self.seal.open(&place(&self.lineage, &self.key), &stored)?
        };
        let (headers, body) = read_back(&stored);
        Ok(Outcome { status: u16::try_from(status).unwrap_or(200), headers, body: body.to_owned(), request })
    }
}

/// The headers that belong to an answer and come again with it. The others are of the request that they came with.
const KEPT_HEADERS: [&str; 2] = ["etag", "location"];

/// Headers, a line each, before the body, which begins with a brace.
fn written_down(headers: &[(&'static str, String)], body: &str) -> String {
    let mut text = String::with_capacity(body.len() + 64);
    for (name, value) in headers.iter().filter(|(name, _)| KEPT_HEADERS.contains(name)) {
        // No line break can be in a header that was sent.
        if !value.contains(['\r', '\n']) {
            text.extend([name, ":", value, "\n"]);
        }
    }
    text.push_str(body);
    text
}

/// What [`written_down`] wrote.
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

/// Where a stored answer belongs: it opens nowhere else.
fn place(lineage: &KeyId, key: &str) -> String {
    format!("idempotency:{lineage}:{key}")
}

/// The right to execute. Belongs to whoever holds the highest fence.
#[derive(Debug, Clone)]
pub struct Claim {
    lineage: KeyId,
    key: String,
    fence: i64,
    seal: Arc<Seal>,
    /// What an earlier owner had begun, such as a run: to be resumed instead of begun again.
    pub resource: Option<String>,
}

/// An outcome to be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The HTTP status.
    pub status: u16,
    /// The answer's own headers, as far as they come again.
    pub headers: Vec<(&'static str, String)>,
    /// The whole body.
    pub body: String,
    /// The request that produced it.
    pub request: String,
}

/// What is known of the header's value.
#[derive(Debug, Clone)]
pub enum Known {
    /// Nothing, or a claim whose owner died: go ahead.
    Claimed(Claim),
    /// It was done before.
    Done(Outcome),
    /// Somebody is at it.
    InProgress,
}

text_enum! {
    /// Where a request with a key stands.
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

/// Reads the header: bare or quoted, 1 to 255 visible characters.
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

/// What is known of the header's value, without claiming it. `None`: nothing, or nothing that still counts.
///
/// # Errors
/// `idempotency_key_reused` where another request used the value.
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

/// Claims of requests whose work is more than one transaction: on PostgreSQL those that wait share a statement. Cheap to
/// clone.
#[derive(Clone, Default)]
pub struct Claims(Arc<Batches<Ask>>);

impl Claims {
    /// Claims in a transaction of its own, or says what is known.
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
        // Of two requests with one key the first has it. The other looks for what is known by itself.
        let known = |ask: &&Self| {
            let is_ours = inserted.remove(&(ask.lineage.clone(), ask.key.clone()));
            is_ours.then(|| Known::Claimed(ask.fresh_claim()))
        };
        Ok(asks.iter().map(known).collect())
    }
}

/// Claims, or says what is known. Losing the race for the insert means "read", not an error.
///
/// # Errors
/// `idempotency_key_reused` where another request used the value.
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
    let row: RecordRow = idempotency_keys::table.find((&ask.lineage, &ask.key)).first(tx.connection())?;
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

/// Notes what the claim's work has begun, so that whoever takes over resumes it.
///
/// # Errors
/// When the claim was taken over.
pub fn attach(tx: &mut Tx, claim: &Claim, resource: &str) -> Result<()> {
    let held = diesel::update(idempotency_keys::table.find((&claim.lineage, &claim.key)))
        .filter(idempotency_keys::fence.eq(claim.fence))
        .set(idempotency_keys::resource_id.eq(resource))
        .execute(tx.connection())?;
    still_ours(held)
}

/// Prolongs the lease of work that goes on.
///
/// # Errors
/// When the claim was taken over.
pub fn renew(tx: &mut Tx, claim: &Claim) -> Result<()> {
    let until = tx.now().plus_seconds(LEASE_SECONDS);
    let held = diesel::update(idempotency_keys::table.find((&claim.lineage, &claim.key)))
        .filter(idempotency_keys::fence.eq(claim.fence))
        .set(idempotency_keys::lease_until.eq(until))
        .execute(tx.connection())?;
    still_ours(held)
}

/// Stores the outcome, in the transaction that it is the outcome of. Of `headers`, which are an answer's own, those
/// are kept that a repetition has too: `ETag` and `Location`.
///
/// # Errors
/// When the claim was taken over: the transaction must then fail, and does.
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

/// Takes back an outcome that was stored while the work went on (202), because the work has failed: a resend executes,
/// and finds what was begun. Does nothing where the claim was taken over.
///
/// # Errors
/// When the database fails.
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

/// The claim of a request that was told that `resource` goes on (202), for whoever ends it after the server that had
/// claimed died.
///
/// # Errors
/// When the database fails.
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

/// Gives the claim up, so that a resend executes. Where something was begun the row stays, to be resumed.
///
/// # Errors
/// When the database fails.
pub fn release(tx: &mut Tx, claim: &Claim) -> Result<()> {
    let now = tx.now();
    diesel::delete(idempotency_keys::table.find((&claim.lineage, &claim.key)))
        .filter(idempotency_keys::fence.eq(claim.fence))
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

/// The stored answers.
pub const SEALED: SealedTable = SealedTable { table: "idempotency_keys", columns: &["body"], reseal };

fn reseal(tx: &mut Tx, seal: &Seal, after: Option<&str>) -> Result<Option<Piece>> {
    use idempotency_keys::{body, key, lineage_id};
    let mut rows = idempotency_keys::table
        .filter(body.is_not_null())
        // Answers that were stored before there was a seal are JSON.
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
            let row = idempotency_keys::table.find((lineage, key_text)).filter(body.eq(old));
            diesel::update(row).set(body.eq(new)).execute(tx.connection())?;
        }
    }
    Ok(Some(piece))
}

/// How many outcomes a transaction forgets, about: it must not keep others waiting.
const PURGED_AT_ONCE: i64 = 1_000;

/// Forgets outcomes whose time is over, some at a time. Gives their number; zero when there are none left.
///
/// # Errors
/// When the database fails.
pub fn purge(tx: &mut Tx) -> Result<usize> {
    let now = tx.now();
    // Where the first so many end: among those that end in one moment there may be a few more.
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
