//! Recovery of runs whose workers died, and retention of their texts.

use crate::accept::narrowed;
use crate::engine::{RunEngine, chain_of};
use crate::execution::{Execution, Plan, PlannedTool};
use crate::memory::{self, ConversationMemory};
use crate::queries::{runs, steps};
use crate::run::{
    Ended, Ending, RunOptions, RunRow, RunStatus, StepRow, StepStatus, ToolOutput, conversation,
};
use ::guardrails::CompiledGuardrails;
use agents::Settings;
use model::{Caller, Code, Error, JsonText, Principal, Result};
use std::sync::Arc;
use store::Tx;

/// Workers that may die over a run before it is given up.
const MOST_WORKERS: i64 = 5;
/// Runs that are taken over at a time.
const TAKEOVER_BATCH: i64 = 20;

impl RunEngine {
    /// Takes over runs with an expired lease, and resumes each in a task of its own. Returns their number.
    ///
    /// # Errors
    /// `internal_error`.
    pub async fn resume_silent(&self) -> Result<usize> {
        let rows = self.db().write(|tx| runs::claim_silent(tx, TAKEOVER_BATCH)).await?;
        let count = rows.len();
        for row in rows {
            if row.status != RunStatus::RequiresAction {
                tracing::warn!(run_id = %row.id, epoch = row.epoch, "a run is resumed");
            }
            self.spawn_resume(row);
        }
        Ok(count)
    }

    /// Drives on a run that is this process's by now, in a task of its own.
    pub(crate) fn spawn_resume(&self, row: RunRow) {
        let engine = self.clone();
        self.0.parts.runtime.spawn(async move {
            let id = row.id.clone();
            if let Err(error) = engine.resume(row).await {
                tracing::error!(run_id = %id, ?error, "a run could not be resumed");
            }
        });
    }

    /// Closes the books of runs that were cancelled while no worker was at them, without waiting until they are looked
    /// for.
    pub(crate) fn close_abandoned(&self) {
        let engine = self.clone();
        self.0.parts.runtime.spawn(async move {
            if let Err(error) = engine.resume_silent().await {
                tracing::warn!(?error, "cancelled runs are left to be closed");
            }
        });
    }

    async fn resume(&self, row: RunRow) -> Result<Ended> {
        let caller = self.caller_of(&row).await?;
        let workers = row.epoch - row.options()?.handed_over;
        let ending = match row.status {
            // Cancelled, before its worker closed its books or while it had none.
            status if status.is_final() => Some(Ending::Stopped),
            // Its lease lasted as long as people had time.
            RunStatus::RequiresAction => Some(Ending::Unanswered),
            _ if workers > MOST_WORKERS => {
                Some(Ending::Failed(Code::AgentFailed, "The run was interrupted too often.".to_owned()))
            }
            _ => None,
        };
        let closes = ending.is_some();
        let execution = self.load(caller, row, closes).await?;
        match ending {
            Some(ending) => self.finish(Arc::new(execution), ending, 0, None).await,
            None => self.drive(execution, None, None).await,
        }
    }

    /// The caller that a run acts for. A key that was revoked meanwhile lets its runs finish.
    async fn caller_of(&self, row: &RunRow) -> Result<Caller> {
        let id = row.key_id.clone();
        let stored = self.db().read(move |read| auth::keys::by_id(read, &id)).await?;
        let workspace = self.0.parts.directory.workspace(row.workspace_id).await?;
        let workspace = workspace.ok_or_else(|| Error::internal("a run's workspace is gone"))?;
        let options = row.options()?;
        Ok(Caller {
            request: row.request_id.clone(),
            actor: stored.actor(),
            key: Arc::new(stored.key),
            principal: Principal::Key,
            workspace,
            idempotency_key: options.idempotency_key,
            trace: options.trace,
            answering: None,
            chain: chain_of(row)?,
        })
    }

    /// A run as it stands in the database, ready to be driven on after its last finished step, or to be closed.
    async fn load(&self, caller: Caller, row: RunRow, closes: bool) -> Result<Execution> {
        let engine = self.clone();
        let load = move |tx: &mut Tx| {
            let (workspace, agent) = (row.workspace_id, row.agent_id);
            // What only has to be closed needs no agent, and is not kept open by one that cannot be read.
            let (settings, tools, options) = if closes {
                (Settings::default(), Vec::new(), RunOptions::default())
            } else {
                let version = agents::queries::version_settings(tx, workspace, agent, row.agent_version)?;
                let options = row.options()?;
                let (settings, tools) = narrowed(version, options.reading_tier);
                (settings, tools, options)
            };
            let attempt_from = row.options()?.attempt_from.unwrap_or(0);
            let guardrails = Arc::new(CompiledGuardrails::new(&settings.guardrails)?);
            let memory = if closes {
                ConversationMemory::default()
            } else {
                memory::read(engine.turns(), tx, &row, &settings, &guardrails)?
            };
            let kept = engine.versions().kept(tx, workspace, tools, &options.versions)?;
            let plan = Arc::new(Plan::new(caller.clone(), settings, kept, guardrails, options)?);
            let active = engine.active().register(&row.id, conversation::key(&row));
            let mut execution = Execution::new(plan, active, row.clone(), memory);
            let tiers = engine.tiers();
            let (prices, folding) = (tiers.get(row.model).prices, tiers.fast.prices);
            for mut step in steps::of_run(tx, workspace, &row.id)? {
                if step.is_held_back() {
                    execution.row.tool_calls += 1;
                    execution.pending.push(step);
                    continue;
                }
                let is_open = step.completed_at.is_none() && step.position >= attempt_from;
                if is_open && execution.plan.tool(&step.name).is_some_and(PlannedTool::is_made_again) {
                    execution.row.tool_calls += 1;
                    execution.pending.push(step);
                    continue;
                }
                let is_verified = |tool: &PlannedTool| tool.writes() && tool.settings().verify_with.is_some();
                if is_open && step.is_tool() && execution.plan.tool(&step.name).is_some_and(is_verified) {
                    // Whether it had its effect is asked before the model hears of it.
                    step.status = StepStatus::Unknown;
                    execution.row.tool_calls += 1;
                    execution.pending.push(step);
                    continue;
                }
                if step.completed_at.is_none() {
                    give_up_step(tx, &mut step)?;
                }
                if step.position < attempt_from {
                    execution.earlier.push(step);
                } else {
                    execution.restore_step(step, prices, folding);
                }
            }
            Ok(execution)
        };
        self.db().write(load).await
    }
}

/// Ends a step that its worker left open. Whether a tool's call had its effect nobody knows, and the model must not
/// assume either.
fn give_up_step(tx: &mut Tx, step: &mut StepRow) -> Result<()> {
    let now = tx.now();
    step.status = StepStatus::Unknown;
    step.completed_at = Some(now);
    if step.is_tool() {
        let output = ToolOutput::unknown("the service was interrupted during the call");
        step.output = Some(JsonText::of(&output));
    }
    steps::finish(tx, step, step.status, now)
}
