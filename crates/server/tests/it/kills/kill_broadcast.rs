//! A broadcast through everything that can go wrong, with the real program: a network that refuses, fails, and does not
//! answer, callbacks that are lost, doubled and shuffled, three `kill -9` and two pauses. Each recipient gets it once, or is
//! `unknown` and got nothing.
//!
//! `SVC_TEST_RECIPIENTS` says how many recipients, 300 if not set; `SVC_TEST_SEED` draws other faults.

use crate::shop::{Shop, setting};
use serde_json::json;
use simulator::Faults;
use testkit::{Kind, until};

enum Trouble {
    Kill,
    Pause,
}

/// What goes wrong when so many hundredths were accepted.
const PLAN: [(usize, Trouble); 5] = [
    (10, Trouble::Kill),
    (25, Trouble::Pause),
    (40, Trouble::Kill),
    (55, Trouble::Pause),
    (70, Trouble::Kill),
];

/// Of a hundred sends five meet a fault.
fn faults() -> Faults {
    Faults {
        rate_limited: 0.01,
        server_error: 0.01,
        gateway_error: 0.01,
        timeout_before: 0.01,
        timeout_after: 0.01,
        silence_ms: 400,
        duplicate: 0.05,
        drop: 0.05,
        redeliver_after_ms: 300,
        reorder: 0.05,
        batch: 0.2,
        early_status: 0.05,
        ..Faults::default()
    }
}

#[testkit::both]
async fn each_recipient_gets_it_once_whatever_goes_wrong(kind: Kind) {
    let recipients = setting("SVC_TEST_RECIPIENTS", 300);
    let shop = Shop::open(kind, 60.max(recipients / 40), 8).await;
    let client = shop.program.client();
    let mut serving = shop.program.serve().await;
    shop.network.set_faults(faults());
    let broadcast = shop.broadcast(&client, recipients).await;
    for (share, trouble) in PLAN {
        shop.accepted(recipients * share / 100).await;
        match trouble {
            Trouble::Kill => {
                serving.kill();
                shop.let_leases_end().await;
                serving = shop.program.serve().await;
            }
            Trouble::Pause => {
                let paused = shop.post(&client, &format!("/broadcasts/{broadcast}/pause"), json!({})).await;
                assert!(paused["counts"]["pending"].as_i64().unwrap() > 0, "{paused}");
                let rest = until("what was in the outbox is sent", async || {
                    let shown = shop.shown(&client, broadcast).await;
                    (shown["counts"]["sending"] == 0).then_some(shown)
                });
                let rest = rest.await;
                // What the network asked to send again later, and what was not answered for sure, waits again.
                let count = |shown: &serde_json::Value, state| shown["counts"][state].as_i64().unwrap();
                let waited = count(&paused, "pending");
                let most = waited + count(&paused, "sending");
                assert_eq!(rest["status"], "paused");
                assert!((waited..=most).contains(&count(&rest, "pending")), "{rest} after {paused}");
                shop.post(&client, &format!("/broadcasts/{broadcast}/send"), json!({})).await;
            }
        }
    }
    shop.completed(&client, broadcast).await;
    let unknown = shop.expect_exactly_one_each(&client, broadcast, recipients).await;
    // Gateways that fail and answers that never come, and what was under way at the three kills.
    let most = recipients / 20 + 3 * 128;
    assert!(unknown <= most, "{unknown} are unknown");
    serving.stop().await;
}
