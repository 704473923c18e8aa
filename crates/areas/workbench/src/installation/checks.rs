//! Checks of what the installation depends on.

use crate::requests::HealthState;
use model::Result;
use operation::{BoxFuture, Cx, Json, State, operation};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// What a check found.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "name": "redis", "status": "ok", "message": "It answers." }))]
pub struct InstallationCheck {
    /// What was checked.
    pub name: &'static str,
    /// How the check ended.
    pub status: HealthState,
    /// What was found, and what to do where something is wrong.
    pub message: String,
}

/// What the checks of the installation found.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "failed": 0 }))]
pub struct InstallationChecked {
    /// Always `installation_checks`.
    pub object: &'static str,
    /// The number of checks that failed.
    pub failed: usize,
    /// All checks.
    pub checks: Vec<InstallationCheck>,
}

/// Checks what the installation depends on. The server implements it: only it knows the settings.
pub trait InstallationChecks: Send + Sync {
    /// Runs all checks. A check that cannot be made is one that failed.
    fn run(&self) -> BoxFuture<Vec<InstallationCheck>>;
}

/// Check the installation
///
/// Checks the settings, the database, the storage of files, the models, the channels and what else the service depends on, as
/// `svc doctor` does. No secret is shown. A check that takes longer than ten seconds fails.
#[operation(get "/dashboard/installation/checks", session = "installation:manage")]
pub async fn check_installation(
    _cx: &Cx,
    State(checks): State<Option<Arc<dyn InstallationChecks>>>,
) -> Result<Json<InstallationChecked>> {
    let checks = match checks.as_ref() {
        Some(checks) => checks.run().await,
        None => Vec::new(),
    };
    let failed = checks.iter().filter(|check| check.status == HealthState::Fail).count();
    Ok(Json(InstallationChecked { object: "installation_checks", failed, checks }))
}
