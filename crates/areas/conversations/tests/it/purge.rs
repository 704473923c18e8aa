//! What is kept about messages that nobody knows.

use chrono::Duration;
use testkit::{ChannelApp, Kind};

#[testkit::both]
async fn errors_and_statuses_of_unknown_messages_are_kept_for_a_time(kind: Kind) {
    let desk = ChannelApp::open(kind).await;
    let errors = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050)
            INSERT INTO channel_errors (channel_id, code, message, created_at)
            SELECT channels.id, 'send_failed', 'No.', channels.created_at FROM channels, n";
    desk.app.sql(errors).await;
    let status =
        "INSERT INTO early_statuses (channel_id, provider_message_id, status, reported_at, created_at)
            SELECT id, 'unknown', 'sent', created_at, created_at FROM channels";
    desk.app.sql(status).await;
    for (hours, errors, statuses) in [(1, 10_000, 1), (24, 10_000, 0), (30 * 24, 0, 0)] {
        desk.app.data.clock.advance(Duration::hours(hours));
        desk.app.service.jobs.run_due().await.unwrap();
        let left = desk.count("SELECT count(*) AS n FROM channel_errors").await;
        assert_eq!(left, errors, "after {hours} hours");
        assert_eq!(desk.count("SELECT count(*) AS n FROM early_statuses").await, statuses);
    }
}
