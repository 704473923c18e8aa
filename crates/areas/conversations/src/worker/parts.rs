//! What the workers of channels work with.

use crate::other_areas::OtherAreas;
use crate::transcriber::Transcriber;
use ::files::Files;
use auth::Seal;
use channels::Network;
use channels::work::{Uploads, WorkNotifier};
use ports::{AgentRuns, FileUses};
use std::sync::Arc;
use store::Db;

/// What the workers work with.
#[derive(Clone)]
pub struct WorkerParts {
    /// The database.
    pub db: Db,
    /// The network.
    pub network: Network,
    /// Opens the credentials of channels.
    pub seal: Arc<Seal>,
    /// The other areas that messages concern.
    pub areas: OtherAreas,
    /// The agents that answer.
    pub runs: Arc<dyn AgentRuns>,
    /// Where files are kept.
    pub files: Arc<Files>,
    /// What refers to files, because those that something else needs stay.
    pub file_uses: FileUses,
    /// What transcribes voice notes.
    pub transcriber: Option<Arc<dyn Transcriber>>,
    /// The files that networks have.
    pub uploads: Uploads,
    /// Notifies the workers.
    pub notifier: WorkNotifier,
}
