//! Responses with broadcasts.

use crate::model::{Broadcast, BroadcastCounts, BroadcastStatus, BroadcastThrottle};
use crate::rows::counts;
use crate::rows::pace::messages_per_second;
use crate::rows::row::BroadcastRow;

use model::{BroadcastId, Error, JsonText, Result, Timestamp};
use store::Read;

/// Builds the responses with broadcasts, in order.
pub(crate) fn outputs(read: &mut Read, rows: &[BroadcastRow]) -> Result<Vec<Broadcast>> {
    let ids: Vec<BroadcastId> = rows.iter().map(|row| row.id).collect();
    let mut counted = counts::of(read, &ids)?;
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let counts = counted.remove(&row.id).unwrap_or_default();
        let eta = eta(read, row, &counts)?;
        all.push(Broadcast::of(row, counts, eta)?);
    }
    Ok(all)
}

/// Builds the response with a broadcast.
pub(crate) fn output(read: &mut Read, row: &BroadcastRow) -> Result<Broadcast> {
    let only = outputs(read, std::slice::from_ref(row))?.pop();
    only.ok_or_else(|| Error::internal("a broadcast is not shown"))
}

impl Broadcast {
    fn of(row: &BroadcastRow, counts: BroadcastCounts, eta_at: Option<Timestamp>) -> Result<Self> {
        let throttle = row.rate_per_minute.map(|rate_per_minute| BroadcastThrottle { rate_per_minute });
        Ok(Self {
            id: row.id,
            object: "broadcast",
            name: row.name.clone(),
            channel_id: row.channel_id,
            template: row.template()?,
            audience: row.audience()?,
            schedule: row.schedule()?,
            throttle,
            frequency_cap: row.frequency_cap.as_ref().map(JsonText::parse).transpose()?,
            status: row.status,
            pause_reason: row.pause_reason,
            resumes_at: row.starts_at.filter(|_| row.status == BroadcastStatus::Paused),
            counts,
            started_at: row.started_at,
            completed_at: row.completed_at,
            eta_at,
            preview: None,
            test: None,
            version: row.version,
            created_by: row.created_by.parse()?,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// Estimates when the sending of a broadcast will be completed.
fn eta(read: &mut Read, row: &BroadcastRow, counts: &BroadcastCounts) -> Result<Option<Timestamp>> {
    let Some(channel) = row.channel_id.filter(|_| row.status == BroadcastStatus::Sending) else {
        return Ok(None);
    };
    let rate = messages_per_second(row, &channels::live(read, row.workspace_id, channel)?);
    let left = u32::try_from(counts.pending + counts.sending).unwrap_or(u32::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "a number of seconds")]
    let seconds = (f64::from(left) / rate).ceil() as i64;
    Ok(Some(read.now().plus_seconds(seconds)))
}
