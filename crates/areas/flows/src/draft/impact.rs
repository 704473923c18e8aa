//! What a new version of a flow means for runs that are under way.

use super::versions::VersionRow;
use crate::runs::row::FlowRunStatus;
use crate::schema::{flow_runs, flow_steps, flow_waits};
use diesel::dsl::{exists, not};
use diesel::prelude::*;
use flow_graphs::{Graph, Node, NodeType};
use model::{Env, FlowId, Result, WorkspaceId};
use operation::Version;
use serde::Serialize;
use std::collections::BTreeMap;
use store::{Read, Tx};
use utoipa::ToSchema;

/// What publishing means for runs that have not ended.
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

/// Runs at a version, as a query.
macro_rules! waiting_at {
    ($flow:expr, $version:expr) => {
        flow_runs::table
            .filter(flow_runs::flow_id.eq($flow))
            .filter(flow_runs::version.eq($version))
            .filter(flow_runs::status.eq(FlowRunStatus::Waiting))
            .filter(flow_runs::ended_at.is_null())
    };
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

impl NewVersion<'_> {
    /// Counts the runs that the version concerns.
    pub(super) fn impact(&self, read: &mut Read) -> Result<FlowImpact> {
        let mut impact = FlowImpact::default();
        for (version, count) in self.open_runs(read)? {
            impact.waiting_runs += count;
            let waiting: i64 = waiting_at!(self.flow, version).count().get_result(read.connection())?;
            let Some(kept) = self.kept(read, version)? else {
                impact.orphaned_runs += waiting;
                continue;
            };
            let lost = waiting_at!(self.flow, version).filter(waits_elsewhere!(&kept));
            impact.orphaned_runs += lost.count().get_result::<i64>(read.connection())?;
            if self.migrates {
                impact.migrated_runs += self.movable(read, version, &kept)?;
            }
        }
        Ok(impact)
    }

    /// The number of runs of each version that have not ended.
    fn open_runs(&self, read: &mut Read) -> Result<Vec<(i64, i64)>> {
        let rows: Vec<(Option<i64>, i64)> = flow_runs::table
            .filter(flow_runs::flow_id.eq(self.flow))
            .filter(flow_runs::ended_at.is_null())
            .filter(flow_runs::version.is_not_null())
            .group_by(flow_runs::version)
            .select((flow_runs::version, diesel::dsl::count_star()))
            .load(read.connection())?;
        Ok(rows.into_iter().filter_map(|(version, count)| Some((version?, count))).collect())
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

    fn movable(&self, read: &mut Read, version: i64, kept: &[String]) -> Result<i64> {
        let mut runs =
            waiting_at!(self.flow, version).filter(not(waits_elsewhere!(kept))).count().into_boxed();
        if self.env == Env::Test {
            runs = runs.filter(flow_runs::livemode.eq(false));
        }
        Ok(runs.get_result(read.connection())?)
    }

    /// Moves the runs that can continue with the version to it. They then act for the key that published it.
    pub(super) fn migrate(&self, tx: &mut Tx, to: &VersionRow) -> Result<()> {
        if !self.migrates {
            return Ok(());
        }
        for (version, _) in self.open_runs(tx)?.into_iter().filter(|(version, _)| *version != to.version) {
            let Some(kept) = self.kept(tx, version)? else { continue };
            let livemodes: &[bool] = if self.env == Env::Test { &[false] } else { &[false, true] };
            let runs = waiting_at!(self.flow, version)
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
