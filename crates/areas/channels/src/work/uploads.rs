//! A cache of uploads to the network: a file of many messages is uploaded once.

use chatnet::SendOutcome;
use model::{ChannelId, FileId, Timestamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OnceCell;

/// The maximum number of cached uploads.
const MOST: usize = 10_000;

/// A file of a channel's network.
pub type UploadKey = (ChannelId, FileId);

/// An upload, shared by all messages with the file.
type Slot = Arc<OnceCell<Result<Upload, SendOutcome>>>;

/// A file that the network keeps until `until`.
#[derive(Debug, Clone)]
struct Upload {
    media_id: String,
    until: Timestamp,
}

/// The uploads known to this process.
#[derive(Clone, Default)]
pub struct Uploads(Arc<Mutex<HashMap<UploadKey, Slot>>>);

/// The network's id of a file.
pub struct MediaId {
    /// The id.
    pub id: String,
    /// Whether it comes from an earlier upload, so that the network may have deleted it.
    pub is_old: bool,
}

impl Uploads {
    /// Returns the network's id of a file. The first caller uploads it, and concurrent callers wait for that upload.
    ///
    /// # Errors
    /// The outcome of the upload.
    pub async fn media_id(
        &self,
        key: UploadKey,
        now: Timestamp,
        kept_until: Timestamp,
        upload: impl Future<Output = Result<String, SendOutcome>>,
    ) -> Result<MediaId, SendOutcome> {
        let slot = self.slot(key, now);
        let is_old = slot.initialized();
        let uploaded = async { upload.await.map(|media_id| Upload { media_id, until: kept_until }) };
        match slot.get_or_init(|| uploaded).await {
            Ok(kept) => Ok(MediaId { id: kept.media_id.clone(), is_old }),
            Err(outcome) => {
                // Remove the failed upload, so that the next message with the file retries.
                self.remove(key, |other| Arc::ptr_eq(other, &slot));
                Err(outcome.clone())
            }
        }
    }

    /// Removes a file that the network has deleted.
    pub fn forget(&self, key: UploadKey, media_id: &str) {
        self.remove(key, |slot| matches!(slot.get(), Some(Ok(kept)) if kept.media_id == media_id));
    }

    fn remove(&self, key: UploadKey, is_it: impl FnOnce(&Slot) -> bool) {
        let mut all = self.all();
        if all.get(&key).is_some_and(is_it) {
            all.remove(&key);
        }
    }

    fn slot(&self, key: UploadKey, now: Timestamp) -> Slot {
        let is_over = |slot: &Slot| matches!(slot.get(), Some(Ok(kept)) if kept.until <= now);
        let mut all = self.all();
        if let Some(slot) = all.get(&key).filter(|slot| !is_over(slot)) {
            return slot.clone();
        }
        if all.len() >= MOST {
            all.clear();
        }
        let slot = Slot::default();
        all.insert(key, slot.clone());
        slot
    }

    fn all(&self) -> MutexGuard<'_, HashMap<UploadKey, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
