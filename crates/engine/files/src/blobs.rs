//! Bytes that belong to rows of other crates: objects without a file, which no list of files shows.
//!
//! They are stored in the same steps as files: [`Files::put_blob`] reserves a place and writes the object, and [`keep_blob`] ends
//! the reservation in the transaction that stores the key. Whoever removes the last row with a key calls [`drop_blob`].

use crate::storage::{Files, MOST_BYTES, give_up, path, release, unavailable};
use bytes::Bytes;
use futures::stream;
use model::{Error, Result, WorkspaceId};
use object_store::ObjectStoreExt;
use store::{Db, Tx};

/// An object that is stored, and deleted after a day unless [`keep_blob`] is called.
#[derive(Debug, Clone)]
pub struct Blob(String);

impl Files {
    /// Stores bytes.
    ///
    /// # Errors
    /// Errors of the storage.
    pub async fn put_blob(&self, db: &Db, workspace: WorkspaceId, bytes: Bytes) -> Result<Blob> {
        let bytes = stream::iter([Ok::<_, Error>(bytes)]);
        let (storage_key, _) = self.write_reserved(db, workspace, bytes, MOST_BYTES).await?;
        Ok(Blob(storage_key))
    }

    /// Reads all bytes of an object.
    ///
    /// # Errors
    /// `not_found` if the object was dropped meanwhile, or errors of the storage.
    pub async fn read_blob(&self, storage_key: &str) -> Result<Bytes> {
        match self.objects.get(&path(storage_key)?).await {
            Ok(found) => found.bytes().await.map_err(unavailable),
            Err(object_store::Error::NotFound { .. }) => Err(Error::not_found("file")),
            Err(error) => Err(unavailable(error)),
        }
    }
}

/// Keeps an object, in the transaction that stores its key, which is returned.
///
/// # Errors
/// `not_found` if the reservation has expired.
pub fn keep_blob(tx: &mut Tx, blob: &Blob) -> Result<String> {
    if release(tx, &blob.0)? { Ok(blob.0.clone()) } else { Err(Error::not_found("file")) }
}

/// Drops an object to which no row refers any more. Its bytes are deleted in the background.
///
/// # Errors
/// `internal_error`.
pub fn drop_blob(tx: &mut Tx, storage_key: &str) -> Result<()> {
    give_up(tx, storage_key)
}
