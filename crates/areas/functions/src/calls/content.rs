//! The content of a call: a program with its settings, and the cache of those that are published.

use crate::draft::settings::Settings;
use crate::draft::versions::VersionRow;
use crate::history::rows::InvocationRow;
use crate::host::CallHost;
use fields::json_schema::Schema;
use model::{Env, FunctionId, KeyId, Result};
use sandbox::Program;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A program with its settings, ready to be called.
pub(super) struct Content {
    /// The version. `None` for a draft.
    pub(super) version: Option<i64>,
    pub(super) program: Program,
    pub(super) settings: Settings,
    input: Option<Schema>,
    output: Option<Schema>,
    /// Who published it. `None` for a draft.
    pub(super) publisher: Option<Publisher>,
}

/// The key that published a version.
pub(super) struct Publisher {
    pub(super) lineage: KeyId,
    pub(super) env: Env,
}

impl Content {
    pub(super) fn draft(code: &str, settings: Settings) -> Self {
        let is_empty = settings.input_schema.as_object().is_some_and(serde_json::Map::is_empty);
        let input = (!is_empty).then(|| Schema::new(settings.input_schema.clone()));
        let output = settings.output_schema.clone().map(Schema::new);
        Self { version: None, program: Program::new(code), settings, input, output, publisher: None }
    }

    pub(super) fn published(row: VersionRow) -> Result<Self> {
        let publisher = Publisher { lineage: row.lineage_id, env: row.env };
        let draft = Self::draft(&row.code, row.settings.parse()?);
        Ok(Self { version: Some(row.version), publisher: Some(publisher), ..draft })
    }

    /// Why an input does not fit.
    pub(super) fn input_mismatch(&self, input: &Value) -> Option<String> {
        self.input.as_ref()?.mismatch(input)
    }

    /// Why an output does not fit.
    pub(super) fn output_mismatch(&self, output: &str) -> Option<String> {
        let schema = self.output.as_ref()?;
        serde_json::from_str(output).ok().and_then(|output| schema.mismatch(&output))
    }
}

/// A call that can be made.
pub(super) struct Prepared {
    /// Its row. It has a lease if it has to be written before the call begins.
    pub(super) row: InvocationRow,
    pub(super) content: Arc<Content>,
    pub(super) key: sandbox::Key,
    pub(super) call: sandbox::Call,
    pub(super) host: CallHost,
}

/// Published versions that were called lately. They never change.
#[derive(Default)]
pub(super) struct Contents(Mutex<HashMap<(FunctionId, i64), Arc<Content>>>);

impl Contents {
    /// The most versions that are kept in memory, each with up to 256 KB of code.
    const MOST: usize = 200;

    fn lock(&self) -> MutexGuard<'_, HashMap<(FunctionId, i64), Arc<Content>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a version, read by `read` if it is not in memory.
    pub(super) fn get_or_read(
        &self,
        function: FunctionId,
        version: i64,
        read: impl FnOnce() -> Result<VersionRow>,
    ) -> Result<Arc<Content>> {
        if let Some(content) = self.lock().get(&(function, version)) {
            return Ok(content.clone());
        }
        let content = Arc::new(Content::published(read()?)?);
        let mut contents = self.lock();
        if contents.len() >= Self::MOST {
            contents.clear();
        }
        contents.insert((function, version), content.clone());
        Ok(content)
    }
}
