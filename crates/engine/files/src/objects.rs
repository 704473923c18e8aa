//! Where bytes are kept: a folder, memory, or an S3-compatible object store.

use model::{Error, Result, Timestamp};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Where bytes are kept.
#[derive(Debug, Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    /// The folder, where they are kept in one.
    folder: Option<PathBuf>,
}

impl Deref for Objects {
    type Target = dyn ObjectStore;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

/// Keeps bytes in a folder, which is made. What was stored survives a loss of power.
///
/// # Errors
/// When the folder cannot be made.
pub fn objects_in(folder: &Path) -> Result<Objects> {
    fs::create_dir_all(folder)?;
    let store = LocalFileSystem::new_with_prefix(folder)
        .map_err(Error::internal)?
        .with_fsync(true)
        .with_automatic_cleanup(true);
    Ok(Objects { folder: Some(folder.to_owned()), ..Objects::of(store) })
}

/// Keeps bytes in memory, for tests.
pub fn objects_in_memory() -> Objects {
    Objects::of(InMemory::new())
}

/// How many bytes go to a folder at a time.
const FOLDER_PART: usize = 512 << 10;

/// How many bytes go to another store at a time. S3 takes no smaller parts.
const PART: usize = 5 << 20;

impl Objects {
    /// How many bytes are gathered before they go to the store.
    pub(crate) fn part_bytes(&self) -> usize {
        if self.folder.is_some() { FOLDER_PART } else { PART }
    }

    /// Keeps bytes in a store.
    pub(crate) fn of(store: impl ObjectStore) -> Self {
        Self { store: Arc::new(store), folder: None }
    }

    /// The store, for readers that keep it.
    pub(crate) fn store(&self) -> Arc<dyn ObjectStore> {
        self.store.clone()
    }

    /// Deletes what a killed process left of objects that it was writing before this time. Other stores than folders do so
    /// themselves.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) async fn delete_abandoned(&self, before: Timestamp) -> Result<()> {
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        let deleted = tokio::task::spawn_blocking(move || delete_abandoned_in(&folder, before));
        Ok(deleted.await.map_err(Error::internal)??)
    }
}

fn delete_abandoned_in(folder: &Path, before: Timestamp) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let done = if entry.file_type()?.is_dir() {
            delete_abandoned_in(&path, before)
        } else if is_unfinished(&path) && written_before(&path, before)? {
            fs::remove_file(&path)
        } else {
            Ok(())
        };
        // Whoever deletes objects at the same time deletes empty folders too.
        match done {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    Ok(())
}

/// Whether a file is an object that is being written: `object_store` adds `#` and a number to the name until it is whole.
fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.rsplit_once('#').map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn written_before(path: &Path, before: Timestamp) -> std::io::Result<bool> {
    let written = match fs::metadata(path) {
        Ok(metadata) => metadata.modified()?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let millis = written.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Ok(i64::try_from(millis).is_ok_and(|millis| Timestamp::from_millis(millis) < before))
}
