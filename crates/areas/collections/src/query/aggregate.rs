//! The operation that counts and aggregates items in groups.

use model::{Caller, CollectionId, Result};
use operation::{Json, Path, State, With, operation};
use query::Planner;
use query::aggregate::{Aggregate, Aggregation};
use records::shape::{self, Shapes};
use store::Read;

/// Count, sum, average, minimum and maximum, grouped by a field
///
/// Computes the `metrics` over all items that match the filter, for each group of `group_by`. Returns one group without
/// `group_by`.
#[operation(get "/collections/{collectionId}/items/aggregate", scope = "items:read")]
pub fn aggregate_items(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    aggregation: Aggregation,
    shapes: State<Shapes>,
    planner: State<Planner>,
) -> Result<With<Json<Aggregate>>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let (groups, report) = query::counted_aggregate(read, &planner.0, &shape, &aggregation)?;
    Ok(With { answer: Json(Aggregate { object: "aggregate", groups }), headers: vec![report.header()] })
}
