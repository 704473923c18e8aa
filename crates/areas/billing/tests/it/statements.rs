//! What a run costs in statements: the hot path of the service.

use crate::bed::Bed;
use diesel::Connection;
use diesel::connection::InstrumentationEvent;
use ports::{Closing, EnergyMeter, Settlement};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{Tx, each};
use testkit::Kind;

fn counted(tx: &mut Tx, work: impl FnOnce(&mut Tx)) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let instrument = move |event: InstrumentationEvent<'_>| {
        if matches!(event, InstrumentationEvent::StartQuery { .. }) {
            seen.fetch_add(1, Ordering::SeqCst);
        }
    };
    each!(tx.connection(), |connection| connection.set_instrumentation(instrument));
    work(tx);
    each!(tx.connection(), |connection| connection.set_instrumentation(|_: InstrumentationEvent<'_>| {}));
    count.load(Ordering::SeqCst)
}

#[testkit::both]
async fn a_run_of_one_step_takes_few_statements(kind: Kind) {
    let bed = Bed::with_energy(kind, 10_000).await;
    for (budget, cutoff, held, settled) in [
        // The key is asked for its budget both times, because it may have got one meanwhile.
        (None, false, 3, (10, 8)),
        (Some(10_000), false, 3, (10, 8)),
        // With cut-off the key's month is locked and changed.
        (Some(10_000), true, 6, (10, 8)),
    ] {
        // On PostgreSQL each is a round trip, so what is inserted at the end is one.
        let expected = (held, if kind == testkit::Kind::Postgres { settled.1 } else { settled.0 });
        let run = bed.run(&bed.key(budget, cutoff).await);
        let ledger = bed.ledger.clone();
        let found = bed
            .write(move |tx| {
                let held = counted(tx, |tx| assert_eq!(ledger.hold(tx, &run, 100, 1).unwrap(), 100));
                let close = Some(Closing { status: "completed", refund: false, last_step: None });
                let settlement = Settlement { step: 0, energy: 40, model: "m", close };
                let settled = counted(tx, |tx| assert_eq!(ledger.settle(tx, &run, &settlement).unwrap(), 40));
                Ok((held, settled))
            })
            .await
            .unwrap();
        assert_eq!(found, expected, "hold and settle with the budget {budget:?}");
    }
}
