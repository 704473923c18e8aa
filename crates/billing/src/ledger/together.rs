//! Settlements that PostgreSQL writes by one statement: every statement is a round trip, and those of a settlement lock
//! rows that all runs of a workspace share. What is out of the ordinary goes statement by statement, on both databases.
//!
//! Each part of the statement reads the one before, so rows are locked in the ledger's order.

use super::account::Account;
use super::entries::EntryKind;
use super::execution::Ended;
use super::hold::{HOLD_SECONDS, Held};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text, Timestamp as SqlTimestamp};
use model::{ExecutionId, LedgerId, Result};
use operation::ports::{Charge, Settlement};
use store::{AnyConnection, Cached, Tx};

/// A debit, as it was decided.
pub(super) struct Debit<'a> {
    pub(super) charge: &'a Charge,
    pub(super) settlement: &'a Settlement<'a>,
    /// The Energy that is debited, and what it costs.
    pub(super) energy: i64,
    pub(super) micros: i64,
    /// What is no longer set aside: of the account, and of the key's month.
    pub(super) unreserved: i64,
    pub(super) freed_micros: i64,
    /// The hold as it is to stand afterwards.
    pub(super) held: &'a Held,
    /// The execution that the debit closes.
    pub(super) execution: Option<Ended<'a>>,
}

/// What a debit has changed.
#[derive(QueryableByName)]
pub(super) struct Debited {
    #[diesel(embed)]
    pub(super) account: Account,
    #[diesel(sql_type = BigInt)]
    pub(super) key_spent: i64,
    #[diesel(sql_type = BigInt)]
    pub(super) key_reserved: i64,
    #[diesel(sql_type = BigInt)]
    pub(super) agent_spent: i64,
    /// The entry, unless its step has one already.
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) entry: Option<LedgerId>,
    /// Whether the first of the grants covered it.
    #[diesel(sql_type = Bool)]
    pub(super) is_burnt: bool,
}

/// The grant is the first one in the order of [`super::entries::burn`] as of the beginning of the statement. Where another
/// settlement has meanwhile used it up, the condition on what remains fails, and nothing is burnt.
const DEBIT: &str = "WITH key_month AS (
        INSERT INTO key_months AS k (lineage_id, month, spent_micros, reserved_micros)
        VALUES ($1, $2, $3, 0)
        ON CONFLICT (lineage_id, month) DO UPDATE
        SET spent_micros = k.spent_micros + $3, reserved_micros = k.reserved_micros - $4
        RETURNING spent_micros, reserved_micros
    ), agent_month AS (
        INSERT INTO agent_months AS a (workspace_id, agent_id, month, spent)
        SELECT $5, $6, $2, $7 FROM key_month
        ON CONFLICT (workspace_id, agent_id, month) DO UPDATE SET spent = a.spent + $7
        RETURNING spent
    ), account AS (
        UPDATE energy_accounts SET balance = balance - $7, reserved = reserved - $8, updated_at = $9
        FROM agent_month WHERE workspace_id = $5
        RETURNING balance, reserved, last_recharge, state
    ), entry AS (
        INSERT INTO energy_entries (workspace_id, id, kind, amount, balance_after, counter_account, usd_micros,
            source_type, source_id, step, key_id, agent_id, request_id, operation, model, created_at)
        SELECT $5, $10, $11, -$7, balance, $12, -$3, 'run', $13, $14, $15, $6, $16, $17, $18, $9 FROM account
        ON CONFLICT DO NOTHING
        RETURNING id
    ), burnt AS (
        UPDATE energy_grants SET remaining = remaining - $7 FROM entry
        WHERE energy_grants.id = (
                SELECT candidates.id FROM energy_grants AS candidates
                WHERE candidates.workspace_id = $5 AND candidates.remaining > 0
                ORDER BY candidates.priority, candidates.expires_at IS NULL, candidates.expires_at,
                    candidates.created_at, candidates.id
                LIMIT 1
            ) AND energy_grants.remaining >= $7
        RETURNING energy_grants.id
    ), burn AS (
        INSERT INTO grant_burns (entry_id, grant_id, amount) SELECT $10, id, $7 FROM burnt
    ), hold AS (
        UPDATE energy_holds SET used = $19, reserved_micros = $20, state = $21, expires_at = $22 WHERE run_id = $13
    ), execution AS (
        INSERT INTO executions (workspace_id, id, kind, source_id, status, livemode, energy, usd_micros, key_id,
            agent_id, model, created_at, first_step, last_step)
        SELECT $5, $23, $17, $13, $24, TRUE, $25, $26, $15, $6, $18, $9, $27, $28 WHERE $24 IS NOT NULL
    )
    SELECT account.*, key_month.spent_micros AS key_spent, key_month.reserved_micros AS key_reserved,
        agent_month.spent AS agent_spent, (SELECT id FROM entry) AS entry, EXISTS (SELECT 1 FROM burnt) AS is_burnt
    FROM key_month, agent_month, account";

/// Writes a debit with all its consequences. `None` where the workspace has no account.
///
/// # Errors
/// When the database fails.
pub(super) fn debit(tx: &mut Tx, debit: &Debit<'_>) -> Result<Option<Debited>> {
    let (now, random) = (tx.now(), tx.random());
    let AnyConnection::Postgres(connection) = tx.connection() else { return Ok(None) };
    let Debit { charge, settlement, held, execution, .. } = debit;
    let caller = &charge.caller;
    let execution = execution.as_ref();
    let statement = diesel::sql_query(DEBIT)
        .bind::<Text, _>(&caller.key.lineage)
        .bind::<Text, _>(&held.month)
        .bind::<BigInt, _>(debit.micros)
        .bind::<BigInt, _>(debit.freed_micros)
        .bind::<BigInt, _>(caller.workspace_id())
        .bind::<BigInt, _>(charge.agent)
        .bind::<BigInt, _>(debit.energy)
        .bind::<BigInt, _>(debit.unreserved)
        .bind::<SqlTimestamp, _>(now)
        .bind::<Text, _>(LedgerId::new(now, &*random))
        .bind::<Text, _>(EntryKind::Debit)
        .bind::<Text, _>(EntryKind::Debit.counter_account())
        .bind::<Text, _>(&charge.run)
        .bind::<BigInt, _>(settlement.step)
        .bind::<Text, _>(&caller.key.id)
        .bind::<Text, _>(&caller.request)
        .bind::<Text, _>(charge.operation)
        .bind::<Text, _>(settlement.model)
        .bind::<BigInt, _>(held.used)
        .bind::<BigInt, _>(held.reserved_micros)
        .bind::<Text, _>(held.state)
        .bind::<SqlTimestamp, _>(now.plus_seconds(HOLD_SECONDS))
        .bind::<Text, _>(ExecutionId::new(now, &*random))
        .bind::<Nullable<Text>, _>(execution.map(|ended| ended.status))
        .bind::<BigInt, _>(execution.map_or(0, |ended| ended.energy))
        .bind::<BigInt, _>(execution.map_or(0, |ended| ended.usd_micros))
        .bind::<BigInt, _>(execution.map_or(0, |ended| ended.first_step))
        .bind::<Nullable<BigInt>, _>(execution.and_then(|ended| ended.last_step));
    Ok(Cached(statement).get_result(connection).optional()?)
}
