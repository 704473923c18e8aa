//! The catalogue, workspaces and partners.

use crate::bed::{Bed, refused};
use auth::partners;
use auth::workspaces::{self, NewWorkspace};
use billing::ledger::sweep_expired_grants;
use billing::plans;
use chrono::Duration;
use model::{Code, PartnerId, SubscriptionStatus, WorkspaceId};
use testkit::Kind;

fn new(slug: &str) -> NewWorkspace {
    NewWorkspace { name: "A workspace".into(), slug: slug.into(), partner: None }
}

#[testkit::both]
async fn the_catalogue_is_completed_and_stays_as_it_was_changed(kind: Kind) {
    let bed = Bed::new(kind).await;
    let changed = bed
        .write(|tx| {
            let mut pro = auth::plans::by_id(tx, "pro")?.unwrap();
            pro.included_energy = 1;
            auth::plans::put(tx, &pro)?;
            plans::seed_catalogue(tx)?;
            auth::plans::by_id(tx, "pro")
        })
        .await
        .unwrap();
    assert_eq!(changed.unwrap().included_energy, 1);
    let workspace = bed.workspace;
    let (all, seen) = bed
        .db()
        .read(move |read| Ok((auth::plans::list(read, None)?, auth::plans::list(read, Some(workspace))?)))
        .await
        .unwrap();
    let ids: Vec<&str> = all.iter().map(|plan| plan.id.as_str()).collect();
    assert_eq!(ids, ["trial", "starter", "pro", "scale", "partner_zero", "unlimited"]);
    assert_eq!(seen.len(), 4);
    assert_eq!(all[3].rate_limit_rpm, Some(3_000));
    assert_eq!(all[3].monthly_quota, None);
    let unmetered: Vec<&str> =
        all.iter().filter(|plan| !plan.energy_metered).map(|plan| plan.id.as_str()).collect();
    assert_eq!(unmetered, ["unlimited"]);
}

#[testkit::both]
async fn workspaces_are_made_found_and_blocked(kind: Kind) {
    let bed = Bed::new(kind).await;
    let partner = bed.write(|tx| partners::create(tx, " Agency ")).await.unwrap().id;
    let made = bed
        .write(move |tx| {
            plans::create_workspace(tx, &NewWorkspace { partner: Some(partner), ..new("bee-2") })
        })
        .await
        .unwrap();
    assert_eq!((made.partner, made.subscription), (Some(partner), SubscriptionStatus::Inactive));
    let id = made.id;
    for text in ["bee-2".to_owned(), id.to_string()] {
        let found = bed.db().read(move |read| workspaces::find(read, &text)).await.unwrap();
        assert_eq!(found, made);
    }
    assert_eq!(bed.db().read(workspaces::list).await.unwrap().len(), 2);
    let blocked = bed.write(move |tx| workspaces::block(tx, id, " Unpaid. ")).await.unwrap();
    assert_eq!(blocked.blocked_reason.as_deref(), Some("Unpaid."));
    assert_eq!(bed.write(move |tx| workspaces::unblock(tx, id)).await.unwrap(), made);
    assert_eq!(refused(bed.write(move |tx| workspaces::block(tx, id, "  ")).await), Code::ValidationError);
    let nowhere = bed.write(|tx| workspaces::block(tx, WorkspaceId(404), "Gone.")).await;
    assert_eq!(refused(nowhere), Code::WorkspaceNotFound);
    assert_eq!(
        refused(bed.db().read(|read| workspaces::find(read, "no-such")).await),
        Code::WorkspaceNotFound
    );
}

#[testkit::both]
async fn names_and_slugs_have_rules(kind: Kind) {
    let bed = Bed::new(kind).await;
    let error = bed.write(|tx| plans::create_workspace(tx, &new("acme"))).await.unwrap_err();
    assert_eq!(error.code(), Code::DuplicateValue);
    assert_eq!(error.body()["details"]["existing_id"], bed.workspace.0);
    for (new, param) in [
        (new("No-Good"), "slug"),
        (NewWorkspace { name: " ".into(), ..new("good") }, "name"),
        (NewWorkspace { name: "x".repeat(81), ..new("good") }, "name"),
        (NewWorkspace { partner: Some(PartnerId(404)), ..new("good") }, "partner"),
    ] {
        let error = bed.write(move |tx| plans::create_workspace(tx, &new)).await.unwrap_err();
        assert_eq!((error.code(), error.param_name()), (Code::ValidationError, Some(param)));
    }
    assert_eq!(refused(bed.write(|tx| partners::create(tx, "")).await), Code::ValidationError);
}

#[testkit::both]
async fn plans_are_set_and_bring_their_energy_once_a_period(kind: Kind) {
    let bed = Bed::new(kind).await;
    let workspace = bed.workspace;
    let end = bed.db().clock().now().plus(Duration::days(30));
    let set = async |plan: &'static str, status, end| {
        bed.write(move |tx| plans::set_plan(tx, workspace, plan, status, end)).await
    };
    let record = set("pro", SubscriptionStatus::Trialing, Some(end)).await.unwrap();
    assert_eq!(record.plan.as_deref(), Some("pro"));
    assert_eq!((record.subscription, record.period_end), (SubscriptionStatus::Trialing, Some(end)));
    let included = async || bed.write(move |tx| plans::grant_included(tx, workspace)).await.unwrap();
    let first = included().await;
    assert!(first.is_some());
    assert_eq!(included().await, first);
    bed.expect(80_000, 0).await;
    // More time for the trial is no other trial.
    let later = bed.db().clock().now().plus(Duration::days(40));
    set("pro", SubscriptionStatus::Trialing, Some(later)).await.unwrap();
    assert_eq!(included().await, first);
    bed.test.clock.advance(Duration::days(40));
    assert_eq!(included().await, None);
    set("pro", SubscriptionStatus::Active, None).await.unwrap();
    let paid = included().await;
    assert_ne!(paid, first);
    // The same plan goes on with its period, whatever happens to the payment.
    let now = bed.db().clock().now();
    let record = set("pro", SubscriptionStatus::Sponsored, None).await.unwrap();
    assert_eq!(record.period_end, Some(now.plus_months(1)));
    assert_eq!(included().await, paid);
    bed.test.clock.advance(Duration::days(1));
    set("pro", SubscriptionStatus::PastDue, Some(now)).await.unwrap();
    assert_eq!(included().await, None);
    let record = set("pro", SubscriptionStatus::Active, None).await.unwrap();
    assert_eq!((record.period_start, record.period_end), (Some(now), Some(now.plus_months(1))));
    assert_eq!(included().await, paid);
    // Another plan is another period.
    set("starter", SubscriptionStatus::Active, None).await.unwrap();
    assert_ne!(included().await, paid);
    set("partner_zero", SubscriptionStatus::Active, None).await.unwrap();
    assert_eq!(included().await, None);
    let unknown = set("gold", SubscriptionStatus::Active, None).await.unwrap_err();
    assert_eq!(unknown.param_name(), Some("plan"));
    let overlay = set("pro", SubscriptionStatus::EnergyDepleted, None).await.unwrap_err();
    assert_eq!(overlay.param_name(), Some("status"));
    for (status, until) in [
        (SubscriptionStatus::Trialing, None),
        (SubscriptionStatus::PastDue, None),
        (SubscriptionStatus::Active, Some(bed.db().clock().now())),
    ] {
        assert_eq!(set("pro", status, until).await.unwrap_err().param_name(), Some("until"), "{status:?}");
    }
    let nowhere =
        bed.write(|tx| plans::set_plan(tx, WorkspaceId(404), "pro", SubscriptionStatus::Active, None)).await;
    assert_eq!(refused(nowhere), Code::WorkspaceNotFound);
}

#[testkit::both]
async fn plans_are_renewed_and_bring_their_energy(kind: Kind) {
    let bed = Bed::new(kind).await;
    let workspace = bed.workspace;
    bed.write(move |tx| plans::grant_included(tx, workspace)).await.unwrap();
    bed.expect(20_000, 0).await;
    let renew = async || bed.write(plans::renew).await.unwrap();
    let sweep = async || bed.write(sweep_expired_grants).await.unwrap();
    let period = async || {
        let record = bed.db().read(move |read| workspaces::find(read, &workspace.to_string())).await.unwrap();
        (record.period_start.unwrap().to_string(), record.period_end.unwrap().to_string())
    };
    let hour = bed.db().clock().now();
    let left = |end: model::Timestamp| Duration::milliseconds(end.millis() - hour.millis());
    bed.test.clock.advance(left(hour.plus_months(1)) - Duration::milliseconds(1));
    assert_eq!(renew().await, 0);
    bed.test.clock.advance(Duration::milliseconds(1));
    assert_eq!((renew().await, renew().await), (1, 0));
    sweep().await;
    // The Energy of the first period has ended with it.
    bed.expect(20_000, 0).await;
    assert_eq!(
        period().await,
        ("2026-02-15T12:00:00.000Z".to_owned(), "2026-03-15T12:00:00.000Z".to_owned())
    );
    // Nobody was there for the next two, so they bring nothing.
    bed.test.clock.advance(Duration::days(28 + 31 + 5));
    assert_eq!((renew().await, renew().await), (1, 0));
    assert_eq!(
        period().await,
        ("2026-04-15T12:00:00.000Z".to_owned(), "2026-05-15T12:00:00.000Z".to_owned())
    );
    sweep().await;
    bed.expect(20_000, 0).await;
    let grants = bed.entries().await.into_iter().filter(|(kind, _)| kind == "grant").count();
    assert_eq!(grants, 3);
}

#[testkit::both]
async fn a_plan_may_end_with_its_period(kind: Kind) {
    let bed = Bed::new(kind).await;
    let workspace = bed.workspace;
    let status = async || {
        let record = bed.db().read(move |read| workspaces::find(read, &workspace.to_string())).await.unwrap();
        (record.subscription, record.cancel_at_period_end)
    };
    bed.write(move |tx| plans::cancel_at_period_end(tx, workspace)).await.unwrap();
    assert_eq!(status().await, (SubscriptionStatus::Active, true));
    bed.test.clock.advance(Duration::days(31));
    assert_eq!(bed.write(plans::renew).await.unwrap(), 1);
    assert_eq!(status().await, (SubscriptionStatus::Canceled, true));
    assert_eq!(bed.write(plans::renew).await.unwrap(), 0);
    bed.expect(0, 0).await;
    let again = bed.write(move |tx| plans::cancel_at_period_end(tx, workspace)).await;
    assert_eq!(refused(again), Code::InvalidState);
    // Set anew it goes on.
    let set = bed
        .write(move |tx| plans::set_plan(tx, workspace, "starter", SubscriptionStatus::Active, None))
        .await
        .unwrap();
    assert!(!set.cancel_at_period_end);
}
