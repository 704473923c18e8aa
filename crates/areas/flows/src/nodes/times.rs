//! The node `wait_until`: a moment on the clocks of the business or of the contact.

use super::calls::done_at;
use super::{NodeCall, NodeFailure, Wait, Work};
use crate::runs::waits::FlowWaitType;
use calendar::instant;
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use chrono_tz::Tz;
use flow_graphs::config::{Delay, FlowZone, WaitUntil};
use model::Timestamp;
use ports::Opening;
use serde_json::json;

/// The hour at which a date without a time begins.
const FIRST_HOUR: u32 = 9;

impl NodeCall {
    /// Waits for a moment. One that has passed is the port `past`.
    pub(super) async fn wait_until(&self) -> Result<Work, NodeFailure> {
        let wanted: WaitUntil = self.config()?;
        let zone = self.zone_of(wanted.timezone).await?;
        let now = self.engine.now();
        let time = wanted.time.as_deref().map(|text| moment(text, zone)).transpose()?;
        let until = match (time, wanted.business_hours) {
            (time, true) => self.opening(time.unwrap_or(now).max(now)).await?,
            (Some(time), false) => time,
            (None, false) => return Err(invalid("`time` has no value.")),
        };
        if until.millis() - now.millis() > Delay::LONGEST * 1000 {
            return Err(invalid("The time is more than 365 days ahead."));
        }
        if until < now {
            return Ok(done_at("past", json!({ "time": until })));
        }
        Ok(Work::Waits(Wait { due_at: Some(until), ..Wait::new(FlowWaitType::Timer) }))
    }

    async fn zone_of(&self, of: FlowZone) -> Result<Tz, NodeFailure> {
        if of == FlowZone::Workspace || self.run.contact_id.is_none() {
            return Ok(self.zone);
        }
        let card = self.contact_card().await?;
        Ok(card.text("$timezone").and_then(|name| name.parse().ok()).unwrap_or(self.zone))
    }

    /// The first moment from `at` on at which the business is open.
    async fn opening(&self, at: Timestamp) -> Result<Timestamp, NodeFailure> {
        let (business, workspace) = (self.engine.0.business.clone(), self.run.workspace_id);
        match self.engine.db().read(move |read| business.opening(read, workspace, at)).await? {
            // A business without opening hours is always open.
            None | Some(Opening::Open) => Ok(at),
            Some(Opening::Closed(Some(next))) => Ok(next),
            Some(Opening::Closed(None)) => Err(invalid("The business does not open within a year.")),
        }
    }
}

fn invalid(message: &str) -> NodeFailure {
    NodeFailure::new("invalid_time", message)
}

/// Reads a date or a time. One without an offset is on the clocks of the zone: a time that these skip is as much later as they
/// were put forward, and of one that they show twice it is the first.
fn moment(text: &str, zone: Tz) -> Result<Timestamp, NodeFailure> {
    let text = text.trim();
    if let Some(at) = Timestamp::parse(text) {
        return Ok(at);
    }
    let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"];
    let time = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let begins = NaiveTime::from_hms_opt(FIRST_HOUR, 0, 0);
    let day = || Some(NaiveDateTime::new(text.parse::<NaiveDate>().ok()?, begins?));
    let message = "`time` is not a date or time, such as `2026-12-24` or `2026-12-24T10:00`.";
    time.or_else(day).map(|time| instant(zone, time)).ok_or_else(|| invalid(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_on_the_clocks_of_a_zone() {
        for (text, zone, at) in [
            ("2026-12-24T10:00:00Z", Tz::Europe__Madrid, "2026-12-24T10:00:00.000Z"),
            ("2026-12-24T10:00:00+05:00", Tz::Europe__Madrid, "2026-12-24T05:00:00.000Z"),
            ("2026-12-24T10:00", Tz::Europe__Madrid, "2026-12-24T09:00:00.000Z"),
            ("2026-12-24 10:00:30", Tz::America__Sao_Paulo, "2026-12-24T13:00:30.000Z"),
            ("2026-12-24", Tz::UTC, "2026-12-24T09:00:00.000Z"),
            ("2026-12-24", Tz::Asia__Tokyo, "2026-12-24T00:00:00.000Z"),
            // Skipped: it is as much later as the clocks were put forward.
            ("2026-03-29T02:30", Tz::Europe__Madrid, "2026-03-29T01:30:00.000Z"),
            // Shown twice: the first.
            ("2026-10-25T02:30", Tz::Europe__Madrid, "2026-10-25T00:30:00.000Z"),
        ] {
            assert_eq!(moment(text, zone).unwrap().rfc3339(), at, "{text} {zone}");
        }
        for wrong in ["", "soon", "2026-02-30", "24.12.2026", "10:00", "2026-12-24T25:00"] {
            assert_eq!(moment(wrong, Tz::UTC).unwrap_err().code, "invalid_time", "{wrong}");
        }
    }
}
