//! Series of recurring tasks: reading how a task is to recur, and what its next task is.

use super::due::{local, zone};
use super::model::NewTaskRecurrence;
use super::recurrence::Rule;
use super::task::{RecurFrom, Stored, TaskDue, TaskRecurrence};
use chrono::{NaiveDateTime, NaiveTime, TimeDelta};
use chrono_tz::Tz;
use model::{Error, FieldError, Result, Timestamp};

/// How a task recurs that has this due date. A task that recurs already keeps its place in the series.
///
/// # Errors
/// `validation_error`, with the code `invalid_recurrence` where the rule is none.
pub(super) fn read(
    new: &NewTaskRecurrence,
    before: Option<&TaskRecurrence>,
    due: Option<&TaskDue>,
    business: Tz,
    now: Timestamp,
) -> Result<TaskRecurrence> {
    let zone = match (&new.time_zone, due) {
        (Some(name), _) => zone(name, "recurrence.time_zone")?,
        (None, Some(due)) => due.zone(),
        (None, None) => business,
    };
    let refused = |rule: String| {
        let error = FieldError::new("recurrence.rule", rule).code("invalid_recurrence");
        Error::all_invalid(vec![error]).unwrap_or_else(|| Error::internal("an error without parts"))
    };
    let rule = Rule::parse(&new.rule).map_err(refused)?;
    let anchor = due.and_then(|due| due.local(zone)).or_else(|| local(zone, now));
    let recurs = anchor.is_some_and(|anchor| rule.recurs(anchor, zone));
    if !recurs {
        return Err(refused("has no day on which the task would recur".to_owned()));
    }
    Ok(TaskRecurrence {
        rule: new.rule.clone(),
        time_zone: zone.name().to_owned(),
        from: new.from,
        occurrence: before.map_or(1, |before| before.occurrence),
        series_id: before.and_then(|before| before.series_id),
        next_id: before.and_then(|before| before.next_id),
    })
}

/// When the task after `task` is due; `None` where the series ends. Occurrences that have passed when the task is completed
/// are skipped.
pub(super) fn next_due(
    task: &Stored,
    recurrence: &TaskRecurrence,
    completed_at: Timestamp,
) -> Option<TaskDue> {
    let rule = Rule::parse(&recurrence.rule).ok()?;
    if rule.count.is_some_and(|count| recurrence.occurrence >= count) {
        return None;
    }
    let zone: Tz = recurrence.time_zone.parse().ok()?;
    let now = local(zone, completed_at)?;
    let Some(due) = &task.due else {
        let today = now.date().and_time(NaiveTime::MIN);
        let next = rule.next(today, today, zone)?;
        return Some(TaskDue { date: Some(next.date()), datetime: None, time_zone: zone.name().to_owned() });
    };
    let at = due.local(zone)?;
    let (anchor, after) = match recurrence.from {
        RecurFrom::Due => (at, at.max(latest_missed(due, now)?)),
        RecurFrom::Completion => {
            let today = now.date().and_time(at.time());
            (today, today)
        }
    };
    due.moved_to(rule.next(anchor, after, zone)?, zone)
}

/// The latest time that has passed: a day has when it is over.
fn latest_missed(due: &TaskDue, now: NaiveDateTime) -> Option<NaiveDateTime> {
    if due.datetime.is_some() {
        return Some(now);
    }
    now.date().and_time(NaiveTime::MIN).checked_sub_signed(TimeDelta::seconds(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When the next task is due: of a task due on a day or at a moment, completed at a moment, in Madrid.
    fn next(rule: &str, from: RecurFrom, due: Option<&str>, completed: &str) -> Option<String> {
        let zone = "Europe/Madrid";
        let due = due.map(|due| TaskDue {
            date: due.parse().ok(),
            datetime: Timestamp::parse(due),
            time_zone: zone.to_owned(),
        });
        let recurrence = TaskRecurrence {
            rule: rule.to_owned(),
            time_zone: zone.to_owned(),
            from,
            occurrence: 1,
            series_id: None,
            next_id: None,
        };
        let task = Stored { due, ..Stored::default() };
        let next = next_due(&task, &recurrence, Timestamp::parse(completed).unwrap())?;
        next.date.map(|date| date.to_string()).or_else(|| next.datetime.map(Timestamp::rfc3339))
    }

    #[test]
    fn the_next_task_is_due_by_the_rule() {
        use RecurFrom::{Completion, Due};
        for (rule, from, due, completed, expected) in [
            ("FREQ=DAILY", Due, Some("2026-03-28"), "2026-03-28T10:00:00Z", Some("2026-03-29")),
            // Early.
            ("FREQ=DAILY", Due, Some("2026-03-28"), "2026-03-01T10:00:00Z", Some("2026-03-29")),
            // Late: what was missed is skipped, but not today.
            ("FREQ=DAILY", Due, Some("2026-03-20"), "2026-03-28T10:00:00Z", Some("2026-03-28")),
            ("FREQ=WEEKLY", Due, Some("2026-03-02"), "2026-03-28T10:00:00Z", Some("2026-03-30")),
            ("FREQ=WEEKLY", Completion, Some("2026-03-02"), "2026-03-28T10:00:00Z", Some("2026-04-04")),
            // The day of completion is that of the time zone.
            ("FREQ=DAILY", Completion, Some("2026-03-02"), "2026-03-28T23:30:00Z", Some("2026-03-30")),
            // Times of day stay when clocks change.
            (
                "FREQ=DAILY",
                Due,
                Some("2026-03-28T08:00:00Z"),
                "2026-03-28T09:00:00Z",
                Some("2026-03-29T07:00:00.000Z"),
            ),
            (
                "FREQ=DAILY",
                Due,
                Some("2026-10-24T07:00:00Z"),
                "2026-10-24T09:00:00Z",
                Some("2026-10-25T08:00:00.000Z"),
            ),
            (
                "FREQ=DAILY",
                Completion,
                Some("2026-03-20T08:00:00Z"),
                "2026-03-28T20:00:00Z",
                Some("2026-03-29T07:00:00.000Z"),
            ),
            ("FREQ=DAILY", Due, None, "2026-03-28T10:00:00Z", Some("2026-03-29")),
            ("FREQ=DAILY;UNTIL=20260328", Due, Some("2026-03-28"), "2026-03-28T10:00:00Z", None),
            ("FREQ=DAILY;COUNT=1", Due, Some("2026-03-28"), "2026-03-28T10:00:00Z", None),
        ] {
            assert_eq!(
                next(rule, from, due, completed).as_deref(),
                expected,
                "{rule} {from:?} {due:?} {completed}"
            );
        }
    }
}
