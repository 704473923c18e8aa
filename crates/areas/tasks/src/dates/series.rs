//! Series of recurring tasks: validates recurrences, and computes the next task.

use super::due::zone;
use super::recurrence::Rule;
use crate::record::model::NewTaskRecurrence;
use crate::record::task::{RecurFrom, SkippedTimes, Stored, StoredRecurrence, TaskDue, TaskRecurrence};
use calendar::{instant, local};
use chrono::{NaiveDateTime, NaiveTime, TimeDelta};
use chrono_tz::Tz;
use model::{Error, FieldError, Result, TaskId, Timestamp};

/// Validates a recurrence of a request, for a task with this due date. A task that already recurs keeps its position
/// in the series.
///
/// # Errors
/// `validation_error`, with the code `invalid_recurrence` if the rule is invalid.
pub(crate) fn read(
    new: &NewTaskRecurrence,
    before: Option<&StoredRecurrence>,
    due: Option<&TaskDue>,
    business: Tz,
    now: Timestamp,
) -> Result<StoredRecurrence> {
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
    let anchor = due.and_then(|due| due.local(zone)).unwrap_or_else(|| local(zone, now));
    if !rule.recurs(anchor, zone) {
        return Err(refused("has no day on which the task would recur".to_owned()));
    }
    let skipped = before.filter(|before| before.shown.time_zone == zone.name()).map(|before| before.skipped);
    let before = before.map(|before| &before.shown);
    let shown = TaskRecurrence {
        rule: new.rule.clone(),
        time_zone: zone.name().to_owned(),
        from: new.from,
        occurrence: before.map_or(1, |before| before.occurrence),
        series_id: before.and_then(|before| before.series_id),
        next_id: before.and_then(|before| before.next_id),
    };
    Ok(StoredRecurrence { shown, skipped: skipped.unwrap_or_default() })
}

/// Drops the skipped local times if the due date or the start no longer is the replacement of the skipped time.
pub(crate) fn settled(
    mut recurrence: StoredRecurrence,
    due: Option<&TaskDue>,
    start_at: Option<Timestamp>,
) -> StoredRecurrence {
    let zone = recurrence.shown.time_zone.parse().unwrap_or(Tz::UTC);
    let is_at = |time: &NaiveDateTime, at: Option<Timestamp>| at == Some(instant(zone, *time));
    let SkippedTimes { due_local, start_local } = &mut recurrence.skipped;
    *due_local = due_local.filter(|time| is_at(time, due.and_then(|due| due.datetime)));
    *start_local = start_local.filter(|time| is_at(time, start_at));
    recurrence
}

/// The values of the next task that differ from the completed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Following {
    pub(crate) due: TaskDue,
    pub(crate) start_at: Option<Timestamp>,
    pub(crate) recurrence: StoredRecurrence,
}

/// Computes the next task after `task`, which is being completed. Returns `None` if the series ends, or the task does not
/// recur. Occurrences before the completion are skipped.
pub(crate) fn following(task: &Stored, id: TaskId, completed_at: Timestamp) -> Option<Following> {
    let StoredRecurrence { shown, skipped } = task.recurrence.clone()?;
    let rule = Rule::parse_stored(&shown.rule)?;
    if rule.count.is_some_and(|count| shown.occurrence >= count) {
        return None;
    }
    let zone: Tz = shown.time_zone.parse().ok()?;
    let next = TaskRecurrence {
        occurrence: shown.occurrence + 1,
        series_id: Some(shown.series_id.unwrap_or(id)),
        next_id: None,
        ..shown.clone()
    };
    let recurrence = |skipped| StoredRecurrence { shown: next, skipped };
    let Some(due) = &task.due else {
        let today = local(zone, completed_at).date().and_time(NaiveTime::MIN);
        let date = Some(rule.next(today, today, zone)?.date());
        let due = TaskDue { date, datetime: None, time_zone: shown.time_zone };
        return Some(Following { due, start_at: None, recurrence: recurrence(SkippedTimes::default()) });
    };
    let at = match due.datetime {
        Some(at) => by_rule(skipped.due_local, at, zone),
        None => due.local(zone)?,
    };
    let next = next_time(&rule, due, at, shown.from, completed_at, zone)?;
    let due = due.moved_to(next, zone);
    let start = task.start_at.and_then(|start| {
        by_rule(skipped.start_local, start, zone).checked_add_signed(next.date() - at.date())
    });
    // Near a clock change, the order of local times can differ from the order of moments, so the start is limited to
    // the due moment.
    let start_at = start.map(|start| instant(zone, start).min(due.moment().unwrap_or(instant(zone, start))));
    let skipped = SkippedTimes {
        due_local: due.datetime.and_then(|at| skipped_time(next, at, zone)),
        start_local: start.zip(start_at).and_then(|(start, at)| skipped_time(start, at, zone)),
    };
    Some(Following { due, start_at, recurrence: recurrence(skipped) })
}

/// Returns the next local time of a task that is due at the local time `at`.
fn next_time(
    rule: &Rule,
    due: &TaskDue,
    at: NaiveDateTime,
    from: RecurFrom,
    completed_at: Timestamp,
    zone: Tz,
) -> Option<NaiveDateTime> {
    let now = local(zone, completed_at);
    match (from, due.datetime) {
        (RecurFrom::Completion, _) => {
            let today = now.date().and_time(at.time());
            rule.next(today, today, zone)
        }
        // Compare moments rather than local times, because on the day of a change clocks repeat some local times and
        // skip others.
        (RecurFrom::Due, Some(_)) => {
            let lately = now.checked_sub_signed(TimeDelta::days(2))?;
            rule.times(at, at.max(lately), zone).find(|time| instant(zone, *time) > completed_at)
        }
        // A day has passed only when it is over.
        (RecurFrom::Due, None) => {
            let yesterday = now.date().and_time(NaiveTime::MIN).checked_sub_signed(TimeDelta::seconds(1))?;
            rule.next(at, at.max(yesterday), zone)
        }
    }
}

/// Returns the local time of a moment. If the moment replaces a skipped local time, returns that time.
fn by_rule(skipped: Option<NaiveDateTime>, at: Timestamp, zone: Tz) -> NaiveDateTime {
    skipped.filter(|time| instant(zone, *time) == at).unwrap_or_else(|| local(zone, at))
}

/// Returns the local time if clocks skip it.
fn skipped_time(time: NaiveDateTime, at: Timestamp, zone: Tz) -> Option<NaiveDateTime> {
    (local(zone, at) != time && instant(zone, time) == at).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recurrence(rule: &str, zone: &str, from: RecurFrom) -> StoredRecurrence {
        let shown = TaskRecurrence {
            rule: rule.to_owned(),
            time_zone: zone.to_owned(),
            from,
            occurrence: 1,
            series_id: None,
            next_id: None,
        };
        StoredRecurrence { shown, skipped: SkippedTimes::default() }
    }

    /// Returns the due date of the next task, in Madrid. `due` is a day or a moment, and `completed` a moment.
    fn next(rule: &str, from: RecurFrom, due: Option<&str>, completed: &str) -> Option<String> {
        let zone = "Europe/Madrid";
        let due = due.map(|due| TaskDue {
            date: due.parse().ok(),
            datetime: Timestamp::parse(due),
            time_zone: zone.to_owned(),
        });
        let task = Stored { due, recurrence: Some(recurrence(rule, zone, from)), ..Stored::default() };
        let next = following(&task, TaskId(1), Timestamp::parse(completed).unwrap())?.due;
        next.date.map(|date| date.to_string()).or_else(|| next.datetime.map(Timestamp::rfc3339))
    }

    #[test]
    fn the_next_task_is_due_by_the_rule() {
        use RecurFrom::{Completion, Due};
        for (rule, from, due, completed, expected) in [
            ("FREQ=DAILY", Due, Some("2026-03-28"), "2026-03-28T10:00:00Z", Some("2026-03-29")),
            // Completed early.
            ("FREQ=DAILY", Due, Some("2026-03-28"), "2026-03-01T10:00:00Z", Some("2026-03-29")),
            // Completed late: missed dates are skipped, but today is not.
            ("FREQ=DAILY", Due, Some("2026-03-20"), "2026-03-28T10:00:00Z", Some("2026-03-28")),
            ("FREQ=WEEKLY", Due, Some("2026-03-02"), "2026-03-28T10:00:00Z", Some("2026-03-30")),
            ("FREQ=WEEKLY", Completion, Some("2026-03-02"), "2026-03-28T10:00:00Z", Some("2026-04-04")),
            // The day of completion is the day in the time zone.
            ("FREQ=DAILY", Completion, Some("2026-03-02"), "2026-03-28T23:30:00Z", Some("2026-03-30")),
            // Local times stay when clocks change.
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

    /// Returns the due dates and starts of the tasks that follow one, each completed an hour before it is due.
    fn course(
        rule: &str,
        zone: &str,
        due: &str,
        start: Option<&str>,
        most: usize,
    ) -> Vec<(String, Option<String>)> {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let mut task = Stored {
            due: Some(TaskDue { date: None, datetime: Some(at(due)), time_zone: zone.to_owned() }),
            due_at: Some(at(due)),
            start_at: start.map(at),
            recurrence: Some(recurrence(rule, zone, RecurFrom::Due)),
            ..Stored::default()
        };
        let mut found = Vec::new();
        while found.len() < most {
            let due = task.due.as_ref().and_then(|due| due.datetime).unwrap();
            let Some(next) = following(&task, TaskId(1), due.plus_seconds(-3_600)) else { break };
            let shown = |at: Timestamp| at.rfc3339().replace(":00.000Z", "Z");
            found.push((shown(next.due.datetime.unwrap()), next.start_at.map(shown)));
            // The recurrence as it is stored in a row.
            let kept = serde_json::from_str(&serde_json::to_string(&next.recurrence).unwrap()).unwrap();
            task = Stored {
                due_at: next.due.datetime,
                due: Some(next.due),
                start_at: next.start_at,
                recurrence: Some(kept),
                ..task
            };
        }
        found
    }

    #[test]
    fn a_time_that_clocks_skip_is_the_old_one_afterwards() {
        for (rule, zone, due, expected) in [
            (
                "FREQ=DAILY",
                "Europe/Madrid",
                "2030-03-30T01:30:00Z",
                ["2030-03-31T01:30Z", "2030-04-01T00:30Z", "2030-04-02T00:30Z"],
            ),
            (
                "FREQ=WEEKLY",
                "America/New_York",
                "2030-03-03T07:30:00Z",
                ["2030-03-10T07:30Z", "2030-03-17T06:30Z", "2030-03-24T06:30Z"],
            ),
            (
                "FREQ=DAILY",
                "Africa/Cairo",
                "2026-04-22T22:00:00Z",
                ["2026-04-23T22:00Z", "2026-04-24T21:00Z", "2026-04-25T21:00Z"],
            ),
            // Gaps of half an hour (Lord Howe), across midnight (Greenland) and of a whole day (Samoa).
            (
                "FREQ=DAILY",
                "Australia/Lord_Howe",
                "2026-10-02T15:45:00Z",
                ["2026-10-03T15:45Z", "2026-10-04T15:15Z", "2026-10-05T15:15Z"],
            ),
            (
                "FREQ=WEEKLY;BYDAY=SA;INTERVAL=2",
                "America/Nuuk",
                "2026-03-15T01:30:00Z",
                ["2026-03-29T01:30Z", "2026-04-12T00:30Z", "2026-04-26T00:30Z"],
            ),
            (
                "FREQ=WEEKLY",
                "Pacific/Apia",
                "2011-12-23T19:00:00Z",
                ["2011-12-30T19:00Z", "2012-01-05T19:00Z", "2012-01-12T19:00Z"],
            ),
        ] {
            let found = course(rule, zone, due, None, 3);
            assert_eq!(found.into_iter().map(|(due, _)| due).collect::<Vec<_>>(), expected, "{zone}");
        }
    }

    #[test]
    fn a_start_keeps_its_local_time() {
        let shown = |found: Vec<(String, Option<String>)>| {
            found.into_iter().map(|(_, start)| start.unwrap_or_default()).collect::<Vec<_>>()
        };
        // From Monday at nine to Sunday at six, across the clock change on 2030-03-31.
        let found =
            course("FREQ=WEEKLY", "Europe/Madrid", "2030-03-24T17:00:00Z", Some("2030-03-18T08:00:00Z"), 3);
        assert_eq!(shown(found), ["2030-03-25T08:00Z", "2030-04-01T07:00Z", "2030-04-08T07:00Z"]);
        // A start that clocks skip is later on that day only.
        let found =
            course("FREQ=DAILY", "Europe/Madrid", "2030-03-30T17:00:00Z", Some("2030-03-30T01:30:00Z"), 3);
        assert_eq!(shown(found), ["2030-03-31T01:30Z", "2030-04-01T00:30Z", "2030-04-02T00:30Z"]);
        // The start is never after the due date: on that day, 02:30 becomes 03:30, which is after 03:10.
        let found =
            course("FREQ=DAILY", "Europe/Madrid", "2030-03-30T02:10:00Z", Some("2030-03-30T01:30:00Z"), 2);
        assert_eq!(shown(found), ["2030-03-31T01:10Z", "2030-04-01T01:10Z"]);
    }

    #[test]
    fn what_has_passed_is_seen_by_moments() {
        use RecurFrom::Due;
        let next = |due, completed| next("FREQ=DAILY", Due, Some(due), completed).unwrap();
        // The local time is 03:10. The task is due at 03:30, which has not passed.
        assert_eq!(next("2026-03-28T01:30:00Z", "2026-03-29T01:10:00Z"), "2026-03-29T01:30:00.000Z");
        // The local time is 02:10 for the second time, and 02:30 has passed.
        assert_eq!(next("2026-10-24T00:30:00Z", "2026-10-25T01:10:00Z"), "2026-10-26T01:30:00.000Z");
    }

    #[test]
    fn a_due_date_that_somebody_moves_counts_from_then_on() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let skipped = SkippedTimes { due_local: "2030-03-31T02:30:00".parse().ok(), start_local: None };
        let recurrence =
            || StoredRecurrence { skipped, ..recurrence("FREQ=DAILY", "Europe/Madrid", RecurFrom::Due) };
        let due = |text| TaskDue { date: None, datetime: Some(at(text)), time_zone: "Europe/Madrid".into() };
        let next = |due: TaskDue| {
            let recurrence = settled(recurrence(), Some(&due), None);
            let task = Stored { due: Some(due), recurrence: Some(recurrence), ..Stored::default() };
            following(&task, TaskId(1), at("2030-03-30T12:00:00Z")).unwrap().due.datetime.unwrap().rfc3339()
        };
        assert_eq!(next(due("2030-03-31T01:30:00Z")), "2030-04-01T00:30:00.000Z");
        assert_eq!(next(due("2030-03-31T01:45:00Z")), "2030-04-01T01:45:00.000Z");
        assert_eq!(
            settled(recurrence(), Some(&due("2030-04-01T01:30:00Z")), None).skipped,
            SkippedTimes::default()
        );
        // A row of an earlier version has no skipped times, and continues from its due date.
        let old: StoredRecurrence = serde_json::from_str(
            r#"{"rule":"FREQ=WEEKLY;BYDAY=1MO","time_zone":"UTC","from":"due","occurrence":3,"series_id":7,"next_id":null}"#,
        )
        .unwrap();
        let task =
            Stored { due: Some(due("2030-01-07T09:00:00Z")), recurrence: Some(old), ..Stored::default() };
        let next = following(&task, TaskId(9), at("2030-01-07T09:00:00Z")).unwrap();
        assert_eq!(next.due.datetime, Some(at("2030-01-14T09:00:00Z")));
        assert_eq!((next.recurrence.shown.occurrence, next.recurrence.shown.series_id), (4, Some(TaskId(7))));
    }
}
