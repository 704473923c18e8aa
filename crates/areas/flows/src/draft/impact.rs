//! What a new version of a flow means for runs that are under way.

use super::versions::VersionRow;
use crate::runs::row::FlowRunStatus;
use crate::schema::{flow_runs, flow_steps, flow_waits};
use diesel::dsl::{exists, not};
use diesel::prelude::*;
use flow_graphs::{Graph, Node, NodeType};
use model::{Env, FlowId, FlowRunId, Result, WorkspaceId};
use operation::Version;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use store::{Read, Tx};
use utoipa::ToSchema;

/// The most runs that are counted. A flow may have a million that wait.
const MOST_COUNTED: i64 = 1_000;

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What publishing means for runs that have not ended. The oldest 1,000 are counted, so 1,000 `waiting_runs` are as many or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "waiting_runs": 12, "orphaned_runs": 1, "migrated_runs": 11 }))]
pub struct FlowImpact {
    /// The runs of earlier versions that have not ended.
    waiting_runs: i64,
    /// Those of them that wait at a node which the new version does not have, or has with another type. They end on their version.
    orphaned_runs: i64,
    /// Those that continue with the new version. None unless `settings.on_publish` is `migrate`.
    migrated_runs: i64,
}

/// The new version of a flow.
pub(super) struct NewVersion<'a> {
    pub(super) workspace: WorkspaceId,
    pub(super) flow: FlowId,
    pub(super) graph: &'a Graph,
    /// The environment of the key that publishes it. Live runs cannot continue with a version that a test key published.
    pub(super) env: Env,
    /// Whether runs that wait move to it.
    pub(super) migrates: bool,
}

/// Whether a run waits at a node that is not among these.
macro_rules! waits_elsewhere {
    ($kept:expr) => {
        exists(
            flow_waits::table
                .inner_join(
                    flow_steps::table.on(flow_steps::run_id
                        .eq(flow_waits::run_id)
                        .and(flow_steps::position.eq(flow_waits::position))),
                )
                .filter(flow_waits::run_id.eq(flow_runs::id))
                .filter(flow_steps::node_id.ne_all($kept)),
        )
    };
}

/// A run that has not ended.
#[derive(Queryable)]
struct OpenRun {
    id: FlowRunId,
    version: Option<i64>,
    status: FlowRunStatus,
    livemode: bool,
}

impl NewVersion<'_> {
    /// Counts the runs that the version concerns, up to [`MOST_COUNTED`].
    pub(super) fn impact(&self, read: &mut Read) -> Result<FlowImpact> {
        let open = self.open_runs(read)?;
        let mut impact = FlowImpact { waiting_runs: number(open.len()), ..FlowImpact::default() };
        let mut waiting: BTreeMap<i64, Vec<OpenRun>> = BTreeMap::new();
        for run in open.into_iter().filter(|run| run.status == FlowRunStatus::Waiting) {
            waiting.entry(run.version.unwrap_or_default()).or_default().push(run);
        }
        for (version, runs) in waiting {
            let Some(kept) = self.kept(read, version)? else {
                impact.orphaned_runs += number(runs.len());
                continue;
            };
            let ids = runs.iter().map(|run| &run.id);
            let lost: HashSet<FlowRunId> = flow_runs::table
                .filter(flow_runs::id.eq_any(ids))
                .filter(waits_elsewhere!(&kept))
                .select(flow_runs::id)
                .load(read.connection())?
                .into_iter()
                .collect();
            impact.orphaned_runs += number(lost.len());
            if self.migrates {
                let stays = |run: &OpenRun| self.env == Env::Test && run.livemode;
                let moves = |run: &&OpenRun| !lost.contains(&run.id) && !stays(run);
                impact.migrated_runs += number(runs.iter().filter(moves).count());
            }
        }
        Ok(impact)
    }

    /// Returns the oldest runs of earlier versions that have not ended.
    fn open_runs(&self, read: &mut Read) -> Result<Vec<OpenRun>> {
        Ok(flow_runs::table
            .filter(flow_runs::flow_id.eq(self.flow))
            .filter(flow_runs::ended_at.is_null())
            .filter(flow_runs::version.is_not_null())
            .order(flow_runs::created_at)
            .limit(MOST_COUNTED)
            .select((flow_runs::id, flow_runs::version, flow_runs::status, flow_runs::livemode))
            .load(read.connection())?)
    }

    /// Returns the versions that have runs which wait.
    fn versions_waiting(&self, read: &mut Read) -> Result<Vec<i64>> {
        let versions: Vec<Option<i64>> = flow_runs::table
            .filter(flow_runs::flow_id.eq(self.flow))
            .filter(flow_runs::ended_at.is_null())
            .filter(flow_runs::status.eq(FlowRunStatus::Waiting))
            .select(flow_runs::version)
            .distinct()
            .load(read.connection())?;
        Ok(versions.into_iter().flatten().collect())
    }

    /// The ids of the nodes of an earlier version that the new one has with the same type. `None` if it lacks a loop or a join, at
    /// which runs stand without a wait.
    fn kept(&self, read: &mut Read, version: i64) -> Result<Option<Vec<String>>> {
        let before = VersionRow::find(read, self.workspace, &self.flow, version)?;
        let before: Graph = before.graph.parse()?;
        let now: BTreeMap<&str, NodeType> =
            self.graph.nodes.iter().map(|node| (node.id.as_str(), node.kind)).collect();
        let is_kept = |node: &&Node| now.get(node.id.as_str()) == Some(&node.kind);
        let holds_runs = |node: &&Node| node.kind.is_loop() || node.kind == NodeType::Join;
        if !before.nodes.iter().filter(holds_runs).all(|node| is_kept(&node)) {
            return Ok(None);
        }
        Ok(Some(before.nodes.iter().filter(is_kept).map(|node| node.id.clone()).collect()))
    }

    /// Moves the runs that can continue with the version to it. They then act for the key that published it.
    pub(super) fn migrate(&self, tx: &mut Tx, to: &VersionRow) -> Result<()> {
        if !self.migrates {
            return Ok(());
        }
        for version in self.versions_waiting(tx)?.into_iter().filter(|version| *version != to.version) {
            let Some(kept) = self.kept(tx, version)? else { continue };
            let livemodes: &[bool] = if self.env == Env::Test { &[false] } else { &[false, true] };
            let runs = flow_runs::table
                .filter(flow_runs::flow_id.eq(self.flow))
                .filter(flow_runs::version.eq(version))
                .filter(flow_runs::status.eq(FlowRunStatus::Waiting))
                .filter(flow_runs::ended_at.is_null())
                .filter(flow_runs::livemode.eq_any(livemodes))
                .filter(not(waits_elsewhere!(&kept)));
            diesel::update(runs)
                .set((
                    flow_runs::version.eq(to.version),
                    flow_runs::key_id.eq(&to.key_id),
                    flow_runs::lineage_id.eq(&to.lineage_id),
                ))
                .execute(tx.connection())?;
        }
        Ok(())
    }
}
