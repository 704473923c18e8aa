//! `ctx.kv`: 64 KB that a function keeps between its calls. Live calls and test calls keep apart.

use super::schema::function_kv;
use diesel::{ExpressionMethods, OptionalExtension, QueryDsl, RunQueryDsl};
use model::{FunctionId, JsonText, Result, WorkspaceId};
use sandbox::HostError;
use serde_json::Value;
use store::{Db, Tx, each};

/// The most bytes of keys and values of a function, of live calls and of test calls each.
pub(crate) const MOST_BYTES: i64 = 64 * 1024;
/// The most bytes of a key.
const LONGEST_KEY: usize = 512;
/// The most keys.
const MOST_KEYS: i64 = 1_000;

/// The values of a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kv {
    pub(super) workspace: WorkspaceId,
    pub(super) function: FunctionId,
    pub(super) livemode: bool,
}

/// Deletes what a function keeps, when the function itself is deleted.
///
/// # Errors
/// When the database fails.
pub fn forget(tx: &mut Tx, workspace: WorkspaceId, function: FunctionId) -> Result<()> {
    diesel::delete(function_kv::table)
        .filter(function_kv::workspace_id.eq(workspace))
        .filter(function_kv::function_id.eq(function))
        .execute(tx.connection())?;
    Ok(())
}

impl Kv {
    /// The value of a key; `null` where there is none.
    pub(super) async fn get(self, db: &Db, key: String) -> std::result::Result<Value, HostError> {
        check_key(&key)?;
        let found = db.read(move |read| {
            let found: Option<JsonText> = function_kv::table
                .find((self.function, self.livemode, &key))
                .filter(function_kv::workspace_id.eq(self.workspace))
                .select(function_kv::value)
                .first(read.connection())
                .optional()?;
            found.map(|found| found.parse()).transpose()
        });
        Ok(found.await.map_err(failed)?.unwrap_or_default())
    }

    /// Sets the value of a key.
    pub(super) async fn set(self, db: &Db, key: String, value: &Value) -> std::result::Result<(), HostError> {
        check_key(&key)?;
        let value = JsonText::of(value);
        let size = i64::try_from(key.len() + value.as_str().len()).unwrap_or(i64::MAX);
        if size > MOST_BYTES {
            return Err(full());
        }
        let fits = db.write(move |tx| self.write(tx, &key, &value, size));
        if fits.await.map_err(failed)? { Ok(()) } else { Err(full()) }
    }

    /// Deletes a key.
    pub(super) async fn delete(self, db: &Db, key: String) -> std::result::Result<(), HostError> {
        check_key(&key)?;
        let deleted = db.write(move |tx| {
            diesel::delete(function_kv::table.find((self.function, self.livemode, &key)))
                .filter(function_kv::workspace_id.eq(self.workspace))
                .execute(tx.connection())?;
            Ok(())
        });
        deleted.await.map_err(failed)
    }

    /// Writes a value, if all values still fit. Calls that write at once take turns, so that together they do not exceed the limit.
    fn write(self, tx: &mut Tx, key: &str, value: &JsonText, size: i64) -> Result<bool> {
        tx.lock(&format!("function_kv {} {}", self.function, self.livemode))?;
        let sizes: Vec<i64> = function_kv::table
            .filter(function_kv::function_id.eq(self.function))
            .filter(function_kv::livemode.eq(self.livemode))
            .filter(function_kv::key.ne(key))
            .select(function_kv::size)
            .limit(MOST_KEYS)
            .load(tx.connection())?;
        let count = i64::try_from(sizes.len()).unwrap_or(i64::MAX);
        if count >= MOST_KEYS || sizes.iter().sum::<i64>() > MOST_BYTES - size {
            return Ok(false);
        }
        let now = tx.now();
        each!(tx.connection(), |connection| diesel::insert_into(function_kv::table)
            .values((
                function_kv::workspace_id.eq(self.workspace),
                function_kv::function_id.eq(self.function),
                function_kv::livemode.eq(self.livemode),
                function_kv::key.eq(key),
                function_kv::value.eq(value),
                function_kv::size.eq(size),
                function_kv::updated_at.eq(now),
            ))
            .on_conflict((function_kv::function_id, function_kv::livemode, function_kv::key))
            .do_update()
            .set((function_kv::value.eq(value), function_kv::size.eq(size), function_kv::updated_at.eq(now)))
            .execute(connection))?;
        Ok(true)
    }
}

fn check_key(key: &str) -> std::result::Result<(), HostError> {
    if key.is_empty() || key.len() > LONGEST_KEY || key.contains('\0') {
        let message = format!("a key has 1 to {LONGEST_KEY} bytes, and no zero byte");
        return Err(HostError::new("TypeError", &message));
    }
    Ok(())
}

fn full() -> HostError {
    let message =
        format!("a function keeps at most {MOST_BYTES} bytes of keys and values, and {MOST_KEYS} keys");
    HostError::new("LimitError", &message).code("kv_full")
}

fn failed(error: model::Error) -> HostError {
    tracing::error!(?error, "the values of a function could not be read or written");
    HostError::new("ServiceError", "the service failed").code("internal_error")
}
