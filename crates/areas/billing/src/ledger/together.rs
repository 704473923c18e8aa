//! Settlements that PostgreSQL writes by one statement, however many they are: every statement is a round trip, and those of
//! a settlement lock rows that all runs of a workspace share. What is out of the ordinary goes statement by statement, on
//! both databases.
//!
//! Each part of the statement reads the one before, so rows are locked in the ledger's order; rows of one table in the
//! order of their keys.

use super::account::Account;
use super::entries::{EntryKind, UNMETERED};
use super::execution::Ended;
use super::hold::{HOLD_SECONDS, Held};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamp as SqlTimestamp};
use model::{ExecutionId, LedgerId, Result};
use ports::{Charge, Settlement};
use store::{AnyConnection, Cached, Tx, column};

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

/// What a debit has changed. Account, key and agent are those after all debits of the statement.
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
    /// Whether the first of the grants covered all debits of the workspace, or none is to be burnt.
    #[diesel(sql_type = Bool)]
    pub(super) is_burnt: bool,
}

/// The grant is the first one in the order of [`super::entries::burn`] as of the beginning of the statement. Where another
/// settlement has meanwhile used it up, the condition on what remains fails, and nothing is burnt.
///
/// Debits of runs whose Energy is not metered have entries and count in the months of keys and agents like others, but change
/// neither the account nor grants.
///
/// The balance after an entry is that of the account at the end, and the Energy of the workspace's later debits.
const DEBIT: &str = "WITH debits AS MATERIALIZED (
        SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
            $22, $23, $24, $29) WITH ORDINALITY AS d (run, workspace, lineage, month, agent, energy, micros, unreserved, freed,
            entry, step, key, request, operation, model, used, reserved, state, execution, status, execution_energy,
            execution_micros, first_step, last_step, metered, place)
    ), key_sums AS (
        SELECT lineage, month, sum(micros)::bigint AS micros, sum(freed)::bigint AS freed FROM debits GROUP BY lineage, month
    ), key_month AS (
        INSERT INTO key_months AS k (lineage_id, month, spent_micros, reserved_micros)
        SELECT lineage, month, micros, 0 FROM key_sums ORDER BY lineage, month
        ON CONFLICT (lineage_id, month) DO UPDATE
        SET spent_micros = k.spent_micros + excluded.spent_micros, reserved_micros = k.reserved_micros
            - (SELECT freed FROM key_sums WHERE key_sums.lineage = k.lineage_id AND key_sums.month = k.month)
        RETURNING lineage_id, month, spent_micros, reserved_micros
    ), agent_month AS (
        INSERT INTO agent_months AS a (workspace_id, agent_id, month, spent)
        SELECT workspace, agent, month, sum(energy)::bigint FROM debits WHERE (SELECT count(*) FROM key_month) > 0
        GROUP BY workspace, agent, month ORDER BY workspace, agent, month
        ON CONFLICT (workspace_id, agent_id, month) DO UPDATE SET spent = a.spent + excluded.spent
        RETURNING workspace_id, agent_id, month, spent
    ), sums AS (
        SELECT workspace, sum(CASE WHEN metered THEN energy ELSE 0 END)::bigint AS energy,
            sum(CASE WHEN metered THEN unreserved ELSE 0 END)::bigint AS unreserved
        FROM debits GROUP BY workspace
    ), locked AS (
        SELECT workspace_id FROM energy_accounts
        WHERE workspace_id IN (SELECT workspace FROM sums) AND (SELECT count(*) FROM agent_month) > 0
        ORDER BY workspace_id FOR UPDATE
    ), account AS (
        UPDATE energy_accounts AS a
        SET balance = a.balance - sums.energy, reserved = a.reserved - sums.unreserved, updated_at = $25
        FROM sums JOIN locked ON locked.workspace_id = sums.workspace WHERE a.workspace_id = sums.workspace
        RETURNING a.workspace_id, a.balance, a.reserved, a.last_recharge, a.state
    ), entry AS (
        INSERT INTO energy_entries (workspace_id, id, kind, amount, balance_after, counter_account, usd_micros,
            source_type, source_id, step, key_id, agent_id, request_id, operation, model, created_at)
        SELECT workspace, entry, $26, -energy, balance + coalesce(later, 0),
            CASE WHEN metered THEN $27 ELSE $30 END, -micros, 'run', run, step, key, agent, request, operation, model, $25
        FROM (
            SELECT debits.*, (sum(CASE WHEN metered THEN energy ELSE 0 END) OVER (PARTITION BY workspace ORDER BY place
                ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))::bigint AS later FROM debits
        ) AS debits JOIN account ON account.workspace_id = debits.workspace
        ON CONFLICT DO NOTHING
        RETURNING id
    ), burnt AS (
        UPDATE energy_grants AS g SET remaining = g.remaining - sums.energy FROM sums
        WHERE (SELECT count(*) FROM entry) > 0 AND sums.energy > 0 AND g.remaining >= sums.energy AND g.id = (
                SELECT candidates.id FROM energy_grants AS candidates
                WHERE candidates.workspace_id = sums.workspace AND candidates.remaining > 0
                ORDER BY candidates.priority, candidates.expires_at IS NULL, candidates.expires_at,
                    candidates.created_at, candidates.id
                LIMIT 1
            )
        RETURNING g.id, g.workspace_id
    ), burn AS (
        INSERT INTO grant_burns (entry_id, grant_id, amount)
        SELECT entry, burnt.id, energy FROM debits JOIN burnt ON burnt.workspace_id = workspace WHERE metered
    ), hold AS (
        UPDATE energy_holds AS h SET used = d.used, reserved_micros = d.reserved, state = d.state, expires_at = $28
        FROM debits AS d WHERE h.run_id = d.run
    ), execution AS (
        INSERT INTO executions (workspace_id, id, kind, source_id, status, livemode, energy, usd_micros, key_id,
            agent_id, model, created_at, first_step, last_step)
        SELECT workspace, execution, operation, run, status, TRUE, execution_energy, execution_micros, key, agent, model,
            $25, first_step, last_step
        FROM debits WHERE status IS NOT NULL
    )
    SELECT account.balance, account.reserved, account.last_recharge, account.state, key_month.spent_micros AS key_spent,
        key_month.reserved_micros AS key_reserved, agent_month.spent AS agent_spent, entry.id AS entry,
        burnt.id IS NOT NULL OR NOT d.metered AS is_burnt
    FROM debits AS d
        JOIN account ON account.workspace_id = d.workspace
        JOIN key_month ON key_month.lineage_id = d.lineage AND key_month.month = d.month
        JOIN agent_month ON agent_month.workspace_id = d.workspace AND agent_month.agent_id = d.agent
            AND agent_month.month = d.month
        LEFT JOIN entry ON entry.id = d.entry
        LEFT JOIN burnt ON burnt.workspace_id = d.workspace
    ORDER BY d.place";

/// Writes debits of different runs with all their consequences, and gives what each has changed, in their order. Those of a
/// workspace without an account are left out.
///
/// # Errors
/// When the database fails.
pub(super) fn debit(tx: &mut Tx, debits: &[Debit<'_>]) -> Result<Vec<Debited>> {
    let (now, random) = (tx.now(), tx.random());
    let AnyConnection::Postgres(connection) = tx.connection() else { return Ok(Vec::new()) };
    let ended = |debit: &Debit<'_>, value: fn(&Ended<'_>) -> i64| debit.execution.as_ref().map_or(0, value);
    let entries: Vec<LedgerId> = debits.iter().map(|_| LedgerId::new(now, &*random)).collect();
    let executions: Vec<ExecutionId> = debits.iter().map(|_| ExecutionId::new(now, &*random)).collect();
    let statement = diesel::sql_query(DEBIT)
        .bind::<Array<Text>, _>(column(debits, |debit| debit.charge.run.as_str()))
        .bind::<Array<BigInt>, _>(column(debits, |debit| debit.charge.caller.workspace_id()))
        .bind::<Array<Text>, _>(column(debits, |debit| debit.charge.caller.key.lineage.as_str()))
        .bind::<Array<Text>, _>(column(debits, |debit| debit.held.month.as_str()))
        .bind::<Array<BigInt>, _>(column(debits, |debit| debit.charge.agent))
        .bind::<Array<BigInt>, _>(column(debits, |debit| debit.energy))
        .bind::<Array<BigInt>, _>(column(debits, |debit| debit.micros))
        .bind::<Array<BigInt>, _>(column(debits, |debit| debit.unreserved))
        .bind::<Array<BigInt>, _>(column(debits, |debit| debit.freed_micros))
        .bind::<Array<Text>, _>(column(&entries, LedgerId::as_str))
        .bind::<Array<BigInt>, _>(column(debits, |debit| debit.settlement.step))
        .bind::<Array<Text>, _>(column(debits, |debit| debit.charge.caller.key.id.as_str()))
        .bind::<Array<Text>, _>(column(debits, |debit| debit.charge.caller.request.as_str()))
        .bind::<Array<Text>, _>(column(debits, |debit| debit.charge.operation))
        .bind::<Array<Text>, _>(column(debits, |debit| debit.settlement.model))
        .bind::<Array<BigInt>, _>(column(debits, |debit| debit.held.used))
        .bind::<Array<BigInt>, _>(column(debits, |debit| debit.held.reserved_micros))
        .bind::<Array<Text>, _>(column(debits, |debit| debit.held.state))
        .bind::<Array<Text>, _>(column(&executions, ExecutionId::as_str))
        .bind::<Array<Nullable<Text>>, _>(column(debits, |debit| {
            debit.execution.as_ref().map(|ended| ended.status)
        }))
        .bind::<Array<BigInt>, _>(column(debits, |debit| ended(debit, |ended| ended.energy)))
        .bind::<Array<BigInt>, _>(column(debits, |debit| ended(debit, |ended| ended.usd_micros)))
        .bind::<Array<BigInt>, _>(column(debits, |debit| ended(debit, |ended| ended.first_step)))
        .bind::<Array<Nullable<BigInt>>, _>(column(debits, |debit| {
            debit.execution.as_ref().and_then(|ended| ended.last_step)
        }))
        .bind::<SqlTimestamp, _>(now)
        .bind::<Text, _>(EntryKind::Debit)
        .bind::<Text, _>(EntryKind::Debit.counter_account())
        .bind::<SqlTimestamp, _>(now.plus_seconds(HOLD_SECONDS))
        .bind::<Array<Bool>, _>(column(debits, |debit| debit.held.metered))
        .bind::<Text, _>(UNMETERED);
    Ok(Cached(statement).load(connection)?)
}
