//! Rows of `function_invocations`, and how they are written.
//!
//! A call that may write has its row before it begins, with a lease that is longer than any call. A call that only reads has one
//! when it ends. A row that is still `running` after its lease belongs to a process that is gone (see `interrupted`).

use super::log::{INVOCATION_LOG, ROW_BYTES};
use super::model::{Invocation, InvocationError, InvocationMode, InvocationStatus, InvocationSummary, Logs};
use crate::schema::function_invocations as table;
use diesel::prelude::*;
use model::{FunctionId, InvocationId, JsonText, Result, Timestamp, WorkspaceId};
use store::logs::{self, Size};
use store::{Batched, OneRow, Read, Tx, each};

/// How long a key of a call makes a repetition get the first outcome, in seconds.
const ONCE_SECONDS: i64 = 24 * 3600;

/// A row of `function_invocations`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = table)]
pub(crate) struct InvocationRow {
    pub(crate) id: InvocationId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) function_id: FunctionId,
    pub(crate) version: Option<i64>,
    pub(crate) mode: InvocationMode,
    pub(crate) status: InvocationStatus,
    pub(crate) input: JsonText,
    pub(crate) output: Option<JsonText>,
    pub(crate) error: Option<JsonText>,
    pub(crate) logs: Option<JsonText>,
    pub(crate) fetches: Option<JsonText>,
    pub(crate) warnings: Option<JsonText>,
    pub(crate) duration_ms: Option<i64>,
    pub(crate) memory_peak_bytes: Option<i64>,
    pub(crate) caller: JsonText,
    pub(crate) chain: Option<JsonText>,
    pub(crate) once_key: Option<String>,
    pub(crate) lease_until: Option<Timestamp>,
    pub(crate) created_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
}

impl InvocationRow {
    /// Returns whether the call has ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.status != InvocationStatus::Running
    }

    /// Finds a call of a function.
    ///
    /// # Errors
    /// `not_found`.
    pub(crate) fn find(
        read: &mut Read,
        workspace: WorkspaceId,
        function: FunctionId,
        id: &InvocationId,
    ) -> Result<Self> {
        table::table
            .filter(table::id.eq(id))
            .filter(table::workspace_id.eq(workspace))
            .filter(table::function_id.eq(function))
            .select(Self::as_select())
            .get_result(read.connection())
            .or_not_found("invocation")
    }

    /// Finds a call by its id alone.
    pub(crate) fn by_id(read: &mut Read, workspace: WorkspaceId, id: &InvocationId) -> Result<Option<Self>> {
        Ok(table::table
            .filter(table::id.eq(id))
            .filter(table::workspace_id.eq(workspace))
            .select(Self::as_select())
            .get_result(read.connection())
            .optional()?)
    }

    /// Finds the call that was made with a key within a day.
    pub(crate) fn made_once(read: &mut Read, function: FunctionId, key: &str) -> Result<Option<Self>> {
        let since = read.now().plus_seconds(-ONCE_SECONDS);
        Ok(table::table
            .filter(table::function_id.eq(function))
            .filter(table::once_key.eq(key))
            .filter(table::created_at.gt(since))
            .select(Self::as_select())
            .get_result(read.connection())
            .optional()?)
    }

    /// Inserts the row. `false` if another call has its key.
    pub(crate) fn insert(&self, tx: &mut Tx) -> Result<bool> {
        if let Some(key) = &self.once_key {
            let since = tx.now().plus_seconds(-ONCE_SECONDS);
            let outdated = table::table
                .filter(table::function_id.eq(self.function_id))
                .filter(table::once_key.eq(key))
                .filter(table::created_at.le(since));
            diesel::update(outdated).set(table::once_key.eq(None::<String>)).execute(tx.connection())?;
        }
        let inserted = each!(tx.connection(), |connection| diesel::insert_into(table::table)
            .values(self)
            .on_conflict_do_nothing()
            .execute(connection))?;
        if inserted == 1 {
            count(tx, std::iter::once(self));
        }
        Ok(inserted == 1)
    }

    /// Writes the end of a call that had its row before it began. `false` if it was ended by somebody else.
    pub(crate) fn end(&self, before: &Self, tx: &mut Tx) -> Result<bool> {
        let changed = diesel::update(table::table.find(&self.id))
            .filter(table::status.eq(InvocationStatus::Running))
            .set((
                table::status.eq(self.status),
                table::input.eq(&self.input),
                table::output.eq(&self.output),
                table::error.eq(&self.error),
                table::logs.eq(&self.logs),
                table::fetches.eq(&self.fetches),
                table::warnings.eq(&self.warnings),
                table::duration_ms.eq(self.duration_ms),
                table::memory_peak_bytes.eq(self.memory_peak_bytes),
                table::lease_until.eq(None::<Timestamp>),
                table::ended_at.eq(self.ended_at),
            ))
            .execute(tx.connection())?;
        if changed == 1 {
            count_growth(tx, before, self);
        }
        Ok(changed == 1)
    }

    /// Deletes the row of a call that was not made after all.
    pub(crate) fn withdraw(&self, tx: &mut Tx) -> Result<()> {
        let deleted = diesel::delete(table::table.find(&self.id))
            .filter(table::status.eq(InvocationStatus::Running))
            .execute(tx.connection())?;
        if deleted == 1 {
            count_out(tx, self);
        }
        Ok(())
    }

    /// The row of a call whose process is gone.
    pub(crate) fn interrupted(&self, now: Timestamp) -> Self {
        let error = InvocationError {
            name: "Interrupted".to_owned(),
            message:
                "The process that made the call ended before the call did, so nobody knows what it has done."
                    .to_owned(),
            stack: String::new(),
            code: "function_interrupted".to_owned(),
            retry_after_ms: None,
        };
        Self {
            status: InvocationStatus::Failed,
            error: Some(JsonText::of(&error)),
            lease_until: None,
            ended_at: Some(now),
            ..self.clone()
        }
    }
}

/// A row to insert. On PostgreSQL those that wait share a statement.
pub(crate) struct NewInvocation(pub(crate) InvocationRow);

impl Batched for NewInvocation {
    type Maker = ();
    type Output = bool;

    fn alone(&self, (): &(), tx: &mut Tx) -> Result<bool> {
        self.0.insert(tx)
    }

    fn together((): &(), batch: &[&Self], tx: &mut Tx) -> Result<Vec<Option<bool>>> {
        // Rows with a key may meet another with the same, so each is inserted alone.
        let rows: Vec<&InvocationRow> =
            batch.iter().map(|new| &new.0).filter(|row| row.once_key.is_none()).collect();
        if !rows.is_empty() {
            each!(tx.connection(), |connection| diesel::insert_into(table::table)
                .values(rows.clone())
                .execute(connection))?;
            count(tx, rows.into_iter());
        }
        Ok(batch.iter().map(|new| new.0.once_key.is_none().then_some(true)).collect())
    }
}

impl InvocationRow {
    /// The bytes of the texts.
    fn text_bytes(&self) -> i64 {
        let optional = [&self.output, &self.error, &self.logs, &self.fetches, &self.warnings, &self.chain];
        let texts = optional.into_iter().flatten().chain([&self.input, &self.caller]);
        texts.map(|text: &JsonText| i64::try_from(text.as_str().len()).unwrap_or(0)).sum()
    }
}

/// Counts rows that this transaction adds.
fn count<'a>(tx: &mut Tx, rows: impl Iterator<Item = &'a InvocationRow>) {
    let fixed = ROW_BYTES.on(tx);
    let sizes = rows.map(|row| (row.workspace_id, Size::row(fixed + row.text_bytes())));
    logs::add(tx, INVOCATION_LOG.name, &logs::sum(sizes));
}

/// Counts the growth of a row whose call ended.
fn count_growth(tx: &mut Tx, before: &InvocationRow, after: &InvocationRow) {
    let growth = Size::part(after.text_bytes() - before.text_bytes());
    logs::add(tx, INVOCATION_LOG.name, &logs::sum([(after.workspace_id, growth)]));
}

/// Counts a row that this transaction deletes.
fn count_out(tx: &mut Tx, row: &InvocationRow) {
    let bytes = ROW_BYTES.on(tx) + row.text_bytes();
    let sizes: [(WorkspaceId, Size); 1] = [(row.workspace_id, Size { rows: -1, bytes: -bytes })];
    logs::add(tx, INVOCATION_LOG.name, &logs::sum(sizes));
}

fn parsed<T: serde::de::DeserializeOwned + Default>(text: Option<&JsonText>) -> Result<T> {
    text.map_or_else(|| Ok(T::default()), JsonText::parse)
}

impl InvocationRow {
    pub(crate) fn failure(&self) -> Result<Option<InvocationError>> {
        self.error.as_ref().map(JsonText::parse).transpose()
    }

    /// The fields of the list.
    pub(crate) fn summary(&self) -> Result<InvocationSummary> {
        let chain = model::Chain::stored(self.chain.as_ref());
        Ok(InvocationSummary {
            id: self.id.clone(),
            object: "function_invocation",
            function_id: self.function_id,
            version: self.version,
            mode: self.mode,
            status: self.status,
            error: self.failure()?,
            duration_ms: self.duration_ms,
            memory_peak_bytes: self.memory_peak_bytes,
            caller: self.caller.parse()?,
            root_event_id: chain.as_ref().map(|chain| chain.root.to_string()),
            depth: chain.map(|chain| chain.depth),
            created_at: self.created_at,
            ended_at: self.ended_at,
        })
    }

    /// The response.
    pub(crate) fn invocation(self) -> Result<Invocation> {
        let logs: Logs = parsed(self.logs.as_ref())?;
        Ok(Invocation {
            summary: self.summary()?,
            logs: logs.lines,
            logs_truncated: logs.truncated,
            fetches: parsed(self.fetches.as_ref())?,
            warnings: parsed(self.warnings.as_ref())?,
            input: self.input,
            output: self.output,
        })
    }
}
