//! The job that looks for what is due by the clock.

use super::{schedules, silences, windows};
use crate::guards::errors;
use crate::matching::Matching;
use crate::rules::row::{AutomationRow, AutomationStatus};
use crate::schema::automations;
use crate::surroundings::Surroundings;
use crate::timer_rows::TimerRow;
use crate::triggers::TriggerType;
use diesel::prelude::*;
use jobs::{Job, JobContext, JobError};
use model::{AutomationId, Result, Timestamp};
use std::collections::HashMap;
use std::time::Duration;
use store::{Db, Read, Tx};

/// How often to look.
const EVERY: Duration = Duration::from_secs(1);
/// The most automations of one round.
const MOST: i64 = 200;
/// The most schedules, or rows, of one transaction.
const BATCH: usize = 20;
/// What could not be fired is tried again after so many seconds.
const ASIDE_SECONDS: i64 = 300;

/// Fires what is due by the clock. Cheap to clone.
#[derive(Clone)]
pub struct Sweep {
    pub(crate) around: Surroundings,
    pub(crate) matching: Matching,
}

impl Sweep {
    /// Builds the job.
    pub(crate) fn job(self) -> Job {
        Job::every("automations.timers", EVERY, "fires automations by the clock", move |job: JobContext| {
            let sweep = self.clone();
            async move {
                // What another process holds at this moment would be found again and again.
                for _ in 0..100 {
                    if job.soft.is_cancelled() {
                        return Err(JobError::hand_back());
                    }
                    if !sweep.round(&job.db).await? {
                        break;
                    }
                }
                Ok(())
            }
        })
    }

    /// Fires some of what is due. Returns whether there may be more.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn round(&self, db: &Db) -> Result<bool> {
        let due = db.read(due).await?;
        let mut did = !due.is_empty();
        let (schedules, dates): (Vec<Due>, Vec<Due>) =
            due.into_iter().partition(|due| due.kind == TriggerType::Schedule);
        for some in schedules.chunks(BATCH) {
            self.fire_schedules(db, some.iter().map(|due| due.id).collect()).await?;
        }
        for due in dates {
            self.fire_dates(db, due.id).await?;
        }
        if db.read(TimerRow::is_any_due).await? {
            self.fire_timers(db).await?;
            did = true;
        }
        Ok(did)
    }

    async fn fire_schedules(&self, db: &Db, ids: Vec<AutomationId>) -> Result<()> {
        if self.write_schedules(db, ids.clone()).await.is_ok() {
            return Ok(());
        }
        // One by one, so that those go on that can.
        for id in ids {
            if let Err(error) = self.write_schedules(db, vec![id]).await {
                tracing::error!(automation = id.0, ?error, "a schedule could not be fired");
                db.write(move |tx| {
                    let until = aside(tx);
                    schedules::put_aside(tx, id, until)
                })
                .await?;
            }
        }
        Ok(())
    }

    async fn write_schedules(&self, db: &Db, ids: Vec<AutomationId>) -> Result<()> {
        let Self { around, matching } = self.clone();
        db.write(move |tx| schedules::fire_due(tx, &around, &matching, &ids)).await
    }

    async fn fire_dates(&self, db: &Db, id: AutomationId) -> Result<()> {
        if let Err(error) = self.look(db, id).await {
            tracing::error!(automation = id.0, ?error, "dates of an automation could not be fired");
            db.write(move |tx| {
                let until = aside(tx);
                windows::set_next(tx, id, Some(until))
            })
            .await?;
        }
        Ok(())
    }

    async fn look(&self, db: &Db, id: AutomationId) -> Result<()> {
        let Self { around, matching } = self.clone();
        let reading = around.clone();
        let Some(found) = db.read(move |read| windows::look(read, &reading, id)).await? else {
            return Ok(());
        };
        db.write(move |tx| found.fire(tx, &around, &matching)).await
    }

    async fn fire_timers(&self, db: &Db) -> Result<()> {
        if self.write_timers(db, BATCH).await.is_ok() {
            return Ok(());
        }
        if let Err(error) = self.write_timers(db, 1).await {
            tracing::error!(?error, "a timer of an automation could not be fired");
            db.write(|tx| {
                let until = aside(tx);
                TimerRow::due(tx, 1)?.iter().try_for_each(|row| row.postpone(tx, until))
            })
            .await?;
        }
        Ok(())
    }

    async fn write_timers(&self, db: &Db, most: usize) -> Result<()> {
        let Self { matching, .. } = self.clone();
        db.write(move |tx| fire_timers(tx, &matching, most)).await
    }
}

fn aside(tx: &Tx) -> Timestamp {
    tx.now().plus_seconds(ASIDE_SECONDS)
}

fn fire_timers(tx: &mut Tx, matching: &Matching, most: usize) -> Result<()> {
    let due = TimerRow::due(tx, i64::try_from(most).unwrap_or(1))?;
    let ids: Vec<AutomationId> = due.iter().map(|timer| timer.automation_id).collect();
    let rows: Vec<AutomationRow> = automations::table
        .filter(automations::id.eq_any(ids))
        .select(AutomationRow::as_select())
        .load(tx.connection())?;
    let rows: HashMap<AutomationId, AutomationRow> = rows.into_iter().map(|row| (row.id, row)).collect();
    due.iter().try_for_each(|timer| match rows.get(&timer.automation_id) {
        row if timer.key == errors::KEY => errors::decide(tx, row, timer),
        row => silences::fire(tx, matching, row, timer),
    })
}

/// An automation whose clock is due.
struct Due {
    id: AutomationId,
    kind: TriggerType,
}

fn due(read: &mut Read) -> Result<Vec<Due>> {
    let rows: Vec<(AutomationId, TriggerType)> = automations::table
        .filter(automations::next_fire_at.le(read.now()))
        .filter(automations::status.eq(AutomationStatus::On))
        .order((automations::next_fire_at, automations::id))
        .limit(MOST)
        .select((automations::id, automations::trigger_type))
        .load(read.connection())?;
    Ok(rows.into_iter().map(|(id, kind)| Due { id, kind }).collect())
}
