//! Counts queries and requests the indexes that they would profit from.

use crate::planning::planner::Planner;
use crate::types::{Query, Report};
use crate::usage::Needs;
use diesel::prelude::*;
use model::{Code, Error, Result, Timestamp};
use records::schema::collection_indexes;
use records::shape::Shape;
use store::Tx;

/// The name of the job that creates requested indexes.
pub(crate) const AUTO_INDEX: &str = "data.index.wish";

/// Counts a query that was executed or was too expensive. If this results in a request for an index or in a use to
/// record, writes it in a background task. The query does not wait for it, and losing it does no harm.
pub(crate) fn count_query(
    planner: &Planner,
    shape: &Shape,
    query: &Query,
    report: Result<&Report, &Error>,
    shown: usize,
    now: Timestamp,
) {
    let rows = planner.budget().rows;
    let too_much = Report { plan: String::new(), uses: Vec::new(), visited: rows, cost: rows };
    let report = match report {
        Ok(report) => report,
        Err(error) if error.code() == Code::QueryTooExpensive => &too_much,
        Err(_) => return,
    };
    let needs = planner.count(shape, query, report, shown, now);
    if needs == Needs::default() {
        return;
    }
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let db = planner.background().clone();
    runtime.spawn(async move {
        if let Err(error) = db.write(move |tx| see_to(tx, &needs)).await {
            tracing::warn!(?error, "what queries need could not be noted");
        }
    });
}

/// Enqueues jobs for requested indexes, and records the use of others.
fn see_to(tx: &mut Tx, needs: &Needs) -> Result<()> {
    let now = tx.now();
    for request in &needs.requests {
        let key = format!(
            "wish:{}:{}",
            request.collection_id,
            serde_json::to_string(&request.parts).map_err(Error::internal)?
        );
        tx.enqueue(request.workspace_id, AUTO_INDEX, Some(&key), request, now)?;
    }
    diesel::update(collection_indexes::table.filter(collection_indexes::id.eq_any(&needs.used)))
        .set(collection_indexes::last_used_at.eq(now))
        .execute(tx.connection())?;
    Ok(())
}
