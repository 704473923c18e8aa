//! Object storage: a folder, memory, or an S3-compatible store.

use model::{Error, Result, Timestamp};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// An object store.
#[derive(Debug, Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    /// The folder, if the store is one.
    folder: Option<PathBuf>,
}

impl Deref for Objects {
    type Target = dyn ObjectStore;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

/// Creates a store in a folder, which is created if it is missing. Stored objects survive a power failure.
///
/// # Errors
/// `internal_error` if the folder cannot be created.
pub fn objects_in(folder: &Path) -> Result<Objects> {
    fs::create_dir_all(folder)?;
    let store = LocalFileSystem::new_with_prefix(folder)
        .map_err(Error::internal)?
        .with_fsync(true)
        .with_automatic_cleanup(true);
    Ok(Objects { folder: Some(folder.to_owned()), ..Objects::of(store) })
}

/// Creates a store in memory, for tests.
pub fn objects_in_memory() -> Objects {
    Objects::of(InMemory::new())
}

/// Bytes per write to a folder.
const FOLDER_PART: usize = 512 << 10;

/// Bytes per part of a multipart upload. S3 accepts no smaller parts.
const PART: usize = 5 << 20;

impl Objects {
    /// Returns how many bytes to collect before a write.
    pub(crate) fn part_bytes(&self) -> usize {
        if self.folder.is_some() { FOLDER_PART } else { PART }
    }

    /// Wraps a store.
    pub(crate) fn of(store: impl ObjectStore) -> Self {
        Self { store: Arc::new(store), folder: None }
    }

    /// Returns the store, for readers that outlive this value.
    pub(crate) fn store(&self) -> Arc<dyn ObjectStore> {
        self.store.clone()
    }

    /// Deletes unfinished objects that a killed process began before this time. Only folders need it; other stores
    /// clean up themselves.
    ///
    /// # Errors
    /// `internal_error` if the folder cannot be read.
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
        // A concurrent deletion of objects may remove empty folders.
        match done {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    Ok(())
}

/// Returns whether a file is an unfinished object. `object_store` appends `#` and a number to its name until it is
/// complete.
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
