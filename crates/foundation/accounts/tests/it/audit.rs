//! The audit log: what stands in it, and that its size is counted.

use crate::bed::{Bed, address};
use accounts::audit::{self, Entry};
use accounts::{AUDIT_LOG, Actor};
use diesel::sql_types::BigInt;
use diesel::{QueryableByName, RunQueryDsl};
use model::WorkspaceId;
use serde_json::json;
use store::logs::totals;
use testkit::Kind;

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

#[testkit::both]
async fn its_size_is_that_on_disk_within_a_tenth(kind: Kind) {
    let bed = Bed::new(kind);
    let account = bed.account("marta@example.com").await;
    for piece in 0..20 {
        let by = Actor::Account(account.id.clone(), Some(address(7)));
        bed.advance(1);
        bed.write(move |tx| {
            for number in 0..100 {
                let entry = Entry::new(by.clone(), "member.role_set", (piece * 100 + number).to_string());
                let details = json!({ "before": "admin", "after": "viewer", "ended_apps": 2 });
                audit::record(tx, entry.workspace(WorkspaceId(1)).details(details))?;
            }
            Ok(())
        })
        .await
        .unwrap();
    }
    let is_postgres = kind == Kind::Postgres;
    let sizes = bed.db().read(move |read| {
        let sql = if is_postgres {
            diesel::sql_query("VACUUM FULL audit_log").execute(read.connection())?;
            "SELECT pg_total_relation_size('audit_log') AS n"
        } else {
            "SELECT CAST(sum(pgsize) AS BIGINT) AS n FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name = 'audit_log')"
        };
        let disk = diesel::sql_query(sql).get_result::<Number>(read.connection())?.n;
        Ok((totals(read)?[AUDIT_LOG.name], disk))
    });
    let (counted, disk) = sizes.await.unwrap();
    assert!((disk - counted.bytes).abs() * 10 <= disk, "{disk} bytes on disk, counted {counted:?}");
}

#[testkit::both]
async fn what_concerns_an_account_is_recorded_without_secrets(kind: Kind) {
    let bed = Bed::new(kind);
    let account = bed.account("marta@example.com").await;
    let signed_in = bed.signed_in("marta@example.com").await;
    bed.advance(1);
    let new = accounts::links::NewLink::PasswordReset(account.id.clone());
    let link = bed.write(move |tx| accounts::links::issue(tx, &new, &Actor::CommandLine)).await.unwrap();
    bed.advance(1);
    bed.sign_in.reset_password(&link, "a brand new sentence".into(), address(9)).await.unwrap();
    let found = bed.db().read(|read| audit::recent(read, None, 10)).await.unwrap();
    let mut actions: Vec<&str> = found.iter().map(|entry| entry.action.as_str()).collect();
    actions.sort_unstable();
    assert_eq!(actions, ["account.created", "account.password_set", "link.issued", "session.opened"]);
    let newest = &found[0];
    assert_eq!(
        (newest.action.as_str(), newest.address.as_deref()),
        ("account.password_set", Some("10.0.0.9"))
    );
    let text = format!("{found:?}");
    for secret in [link.reveal(), signed_in.secret.reveal(), "brand new", "argon2"] {
        assert!(!text.contains(secret));
    }
}
