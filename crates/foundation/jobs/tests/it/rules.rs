//! Schedules and outcomes of jobs, with a clock set by the tests.

use crate::{Seen, ask, job, pass, row, rows};
use diesel::connection::SimpleConnection;
use jobs::{Job, JobError, Runner};
use model::Error;
use std::time::Duration;
use testkit::{Kind, TestDb};

#[testkit::both]
async fn a_job_runs_when_it_is_due_and_is_gone_when_done(kind: Kind) {
    let test = TestDb::new(kind);
    let seen = Seen::default();
    let noting = seen.clone();
    let runner = Runner::new(test.db.clone()).with([job("k", move |context| {
        let noted = noting.note(&context);
        async { noted }
    })]);
    test.db.write(|tx| tx.enqueue(None, "k", None, &1, tx.now().plus_seconds(10))).await.unwrap();
    ask(&test.db, "k", None, 2).await;
    ask(&test.db, "of another version", None, 3).await;
    assert_eq!(runner.run_due().await.unwrap(), 1);
    assert_eq!(rows(&test.db).await.len(), 2);
    pass(&test, 10);
    assert_eq!(runner.run_due().await.unwrap(), 1);
    assert_eq!(seen.all(), [(2, 1), (1, 1)]);
    assert_eq!(row(&test.db).await.attempts, 0, "what no handler is for is left alone");
}

#[testkit::both]
async fn failures_are_tried_again_after_growing_delays_and_given_up(kind: Kind) {
    let test = TestDb::new(kind);
    let seen = Seen::default();
    let noting = seen.clone();
    let runner = Runner::new(test.db.clone()).with([job("k", move |context| {
        let noted = noting.note(&context);
        async {
            noted?;
            "no number".parse::<i64>().map_err(Error::internal)?;
            Ok(())
        }
    })
    .up_to(3)]);
    ask(&test.db, "k", None, 7).await;
    for (attempt, longest) in [(1, 2), (2, 4)] {
        assert_eq!(runner.run_due().await.unwrap(), 1);
        let now = test.db.clock().now();
        let row = row(&test.db).await;
        assert!(row.run_at >= now.plus_seconds(longest / 2), "{row:?}");
        assert!(row.run_at <= now.plus_seconds(longest), "{row:?}");
        assert_eq!((row.attempts, row.lease_until, row.failed_at), (attempt, None, None));
        assert_eq!(row.last_error.unwrap(), "invalid digit found in string");
        pass(&test, longest);
    }
    assert_eq!(runner.run_due().await.unwrap(), 1);
    pass(&test, 100_000);
    assert_eq!(runner.run_due().await.unwrap(), 0);
    let row = row(&test.db).await;
    assert_eq!((row.attempts, row.lease_until), (3, None));
    assert!(row.failed_at.is_some() && row.last_error.is_some());
    assert_eq!(seen.all(), [(7, 1), (7, 2), (7, 3)]);

    ask(&test.db, "waits", None, 8).await;
    for (seconds, deleted) in [(29 * 24 * 3_600 - 100_000, 0), (2 * 24 * 3_600, 1), (1, 0)] {
        pass(&test, seconds);
        assert_eq!(test.db.write(jobs::purge_failed).await.unwrap(), deleted);
    }
    assert_eq!(rows(&test.db).await.len(), 1, "jobs that wait stay");
}

#[testkit::both]
async fn a_handler_may_say_when_to_try_again_or_never(kind: Kind) {
    let test = TestDb::new(kind);
    let runner = Runner::new(test.db.clone())
        .with([job("later", |context| async move {
            if context.attempts < 3 {
                return Err(JobError::retry_in(Duration::from_millis(1500), Error::internal("busy")));
            }
            Ok(())
        })])
        .with([job("never", |_| async { Err(JobError::give_up(Error::not_found("contact"))) })]);
    ask(&test.db, "later", None, 0).await;
    let requested_at = test.db.clock().now();
    assert_eq!(runner.run_due().await.unwrap(), 1);
    let waiting = row(&test.db).await;
    assert_eq!(waiting.run_at.millis() - requested_at.millis(), 1500);
    assert_eq!(waiting.last_error.as_deref(), Some("busy"));
    for runs in [1, 1, 0] {
        pass(&test, 2);
        assert_eq!(runner.run_due().await.unwrap(), runs);
    }
    assert_eq!(rows(&test.db).await, []);

    ask(&test.db, "never", None, 0).await;
    assert_eq!(runner.run_due().await.unwrap(), 1);
    let row = row(&test.db).await;
    assert_eq!(row.last_error.unwrap(), "not_found: The contact does not exist in this workspace.");
    assert_eq!((row.attempts, row.failed_at), (1, Some(test.db.clock().now())));
}

#[testkit::both]
async fn a_panic_is_a_failure(kind: Kind) {
    let test = TestDb::new(kind);
    let runner = Runner::new(test.db.clone())
        .with([job("early", |_| -> std::future::Ready<_> { panic!("at once") })])
        .with([job("late", |context| async move {
            tokio::task::yield_now().await;
            panic!("at {}", context.attempts)
        })
        .up_to(1)]);
    ask(&test.db, "early", None, 0).await;
    ask(&test.db, "late", None, 0).await;
    assert_eq!(runner.run_due().await.unwrap(), 2);
    let rows = rows(&test.db).await;
    assert_eq!(rows[0].last_error.as_deref(), Some("panicked: at once"));
    assert_eq!(rows[0].failed_at, None);
    assert_eq!(rows[1].last_error.as_deref(), Some("panicked: at 1"));
    assert!(rows[1].failed_at.is_some());
}

#[testkit::both]
async fn a_key_has_one_job_until_it_is_done(kind: Kind) {
    let test = TestDb::new(kind);
    let seen = Seen::default();
    let noting = seen.clone();
    let runner = Runner::new(test.db.clone()).with([job("k", move |context| {
        let noted = noting.note(&context);
        async { noted }
    })]);
    for payload in 1..=3 {
        ask(&test.db, "k", Some("key"), payload).await;
    }
    assert_eq!(runner.run_due().await.unwrap(), 1);
    ask(&test.db, "k", Some("key"), 4).await;
    assert_eq!(runner.run_due().await.unwrap(), 1);
    assert_eq!(seen.all(), [(1, 1), (4, 1)]);
    assert_eq!(rows(&test.db).await, []);
}

#[testkit::both]
async fn a_key_that_is_enqueued_while_it_runs_runs_once_more(kind: Kind) {
    let test = TestDb::new(kind);
    let seen = Seen::default();
    let noting = seen.clone();
    let runner = Runner::new(test.db.clone()).with([job("k", move |context| {
        let noted = noting.note(&context);
        async move {
            if context.payload.parse::<i64>()? < 3 {
                let next = context.payload.parse::<i64>()? + 1;
                let ask = move |tx: &mut store::Tx| tx.enqueue(None, "k", Some("key"), &next, tx.now());
                context.db.write(ask).await?;
                // Neither success nor failure of this run may discard the new request.
                if next == 3 {
                    return Err(JobError::give_up(Error::internal("no")));
                }
            }
            noted
        }
    })
    .up_to(1)]);
    ask(&test.db, "k", Some("key"), 1).await;
    assert_eq!(runner.run_due().await.unwrap(), 3);
    assert_eq!(seen.all(), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(rows(&test.db).await, []);
}

#[testkit::both]
async fn a_job_may_put_itself_off_without_failing(kind: Kind) {
    let test = TestDb::new(kind);
    let runner = Runner::new(test.db.clone()).with([job("poll", |context| async move {
        let ask = |tx: &mut store::Tx| tx.enqueue(None, "poll", Some("key"), &(), tx.now().plus_seconds(60));
        Ok(context.db.write(ask).await?)
    })]);
    ask(&test.db, "poll", Some("key"), 0).await;
    for _ in 0..20 {
        assert_eq!(runner.run_due().await.unwrap(), 1);
        let row = row(&test.db).await;
        assert_eq!((row.attempts, row.lease_until, row.last_error), (0, None, None));
        pass(&test, 60);
    }
}

#[testkit::both]
async fn an_abandoned_job_can_be_enqueued_once_more(kind: Kind) {
    let test = TestDb::new(kind);
    let runner = Runner::new(test.db.clone()).with([job("k", |context| async move {
        match context.payload.parse::<i64>()? {
            0 => Err(JobError::give_up(Error::internal("no"))),
            _ => Ok(()),
        }
    })]);
    ask(&test.db, "k", Some("key"), 0).await;
    assert_eq!(runner.run_due().await.unwrap(), 1);
    assert!(row(&test.db).await.failed_at.is_some());
    ask(&test.db, "k", Some("key"), 1).await;
    assert_eq!(runner.run_due().await.unwrap(), 1);
    assert_eq!(rows(&test.db).await, []);
}

#[testkit::both]
async fn periodic_work_runs_once_in_a_period_over_all_replicas(kind: Kind) {
    let test = TestDb::new(kind);
    let hour = Duration::from_secs(3600);
    let replica = |db| Runner::new(db).with([Job::every("sweep", hour, "", |_| async { Ok(()) })]);
    let (one, other) = (replica(test.db.clone()), replica(test.reopen()));
    let start = test.db.clock().now();
    let both = || async {
        let (one, other) = tokio::join!(one.run_due(), other.run_due());
        one.unwrap() + other.unwrap()
    };
    assert_eq!(both().await, 1, "for the first time at once");
    assert_eq!(row(&test.db).await.run_at, start.plus_seconds(3600));
    pass(&test, 3599);
    assert_eq!(both().await, 0);
    pass(&test, 1);
    assert_eq!(other.run_due().await.unwrap(), 1);
    assert_eq!(one.run_due().await.unwrap(), 0);
    pass(&test, 3600 * 5 + 60);
    assert_eq!(both().await, 1, "what was missed is not made up for");
    let row = row(&test.db).await;
    assert_eq!(row.run_at, start.plus_seconds(3600 * 7), "and the slots stay where they are");
    assert_eq!((row.attempts, row.lease_until, row.failed_at), (0, None, None));
}

#[testkit::both]
async fn a_shorter_period_counts_from_now(kind: Kind) {
    let test = TestDb::new(kind);
    let every = |seconds| {
        let period = Duration::from_secs(seconds);
        Runner::new(test.db.clone()).with([Job::every("sweep", period, "", |_| async { Ok(()) })])
    };
    assert_eq!(every(86_400).run_due().await.unwrap(), 1);
    assert_eq!(every(60).run_due().await.unwrap(), 0);
    pass(&test, 60);
    assert_eq!(every(60).run_due().await.unwrap(), 1);
}

#[testkit::both]
async fn periodic_work_that_fails_is_tried_again_within_its_period_and_never_given_up(kind: Kind) {
    let test = TestDb::new(kind);
    let start = test.db.clock().now();
    let runner =
        Runner::new(test.db.clone()).with([Job::every("sweep", Duration::from_secs(60), "", |_| async {
            Err(Error::internal("no").into())
        })
        .up_to(2)]);
    assert_eq!(runner.run_due().await.unwrap(), 1);
    let retried = row(&test.db).await;
    assert!(retried.run_at <= start.plus_seconds(2), "{retried:?}");
    pass(&test, 2);
    assert_eq!(runner.run_due().await.unwrap(), 1);
    let row = row(&test.db).await;
    assert!(row.run_at > start.plus_seconds(2) && row.run_at <= start.plus_seconds(62), "{row:?}");
    assert_eq!((row.attempts, row.failed_at, row.last_error.as_deref()), (0, None, Some("no")));
    pass(&test, 60);
    assert_eq!(runner.run_due().await.unwrap(), 1);
}

#[testkit::both]
async fn a_job_that_ends_its_owners_is_given_up(kind: Kind) {
    let test = TestDb::new(kind);
    let seen = Seen::default();
    let noting = seen.clone();
    let runner = Runner::new(test.db.clone()).with([job("k", move |context| {
        let noted = noting.note(&context);
        async { noted }
    })
    .up_to(3)]);
    ask(&test.db, "k", None, 0).await;
    let vanish = "UPDATE jobs SET attempts = 3, epoch = 3, lease_until = '2026-01-15 12:00:30'";
    test.db.write(move |tx| Ok(tx.connection().batch_execute(vanish)?)).await.unwrap();
    pass(&test, 29);
    assert_eq!(runner.run_due().await.unwrap(), 0);
    pass(&test, 1);
    runner.run_due().await.unwrap();
    assert_eq!(seen.all(), []);
    let row = row(&test.db).await;
    assert!(row.failed_at.is_some());
    assert_eq!(row.last_error.unwrap(), "its owner vanished, and no attempts are left");
}
