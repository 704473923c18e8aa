//! Files.

use super::refused::Refused;
use super::rules;
use bytes::Bytes;
use model::Timestamp;
use std::collections::{HashMap, VecDeque};

/// How long a download URL is valid.
const ADDRESS_SECONDS: i64 = 300;
/// How long files of customers are kept.
const INBOUND_SECONDS: i64 = 7 * 24 * 3600;
/// How long uploaded files are kept.
const UPLOAD_SECONDS: i64 = 30 * 24 * 3600;

/// A stored file.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) mime_type: String,
    pub(crate) content: Bytes,
    expires_at: Timestamp,
}

/// The stored files, oldest first.
pub(crate) struct Files {
    by_id: HashMap<String, File>,
    order: VecDeque<String>,
    most: usize,
}

impl Files {
    pub(crate) fn new(most: usize) -> Self {
        Self { by_id: HashMap::new(), order: VecDeque::new(), most: most.max(1) }
    }

    fn insert(&mut self, id: String, file: File) {
        while self.order.len() >= self.most {
            if let Some(oldest) = self.order.pop_front() {
                self.by_id.remove(&oldest);
            }
        }
        self.order.push_back(id.clone());
        self.by_id.insert(id, file);
    }

    /// Stores a file of a customer.
    pub(crate) fn receive(&mut self, id: String, mime_type: &str, content: Bytes, now: Timestamp) {
        let expires_at = now.plus_seconds(INBOUND_SECONDS);
        self.insert(id, File { mime_type: mime_type.to_owned(), content, expires_at });
    }

    /// Stores a file that the business uploads.
    pub(crate) fn upload(
        &mut self,
        id: String,
        mime_type: &str,
        content: Bytes,
        now: Timestamp,
    ) -> Result<(), Refused> {
        if content.is_empty() || content.len() > rules::most_bytes(mime_type) {
            let details = format!("A file of type {mime_type} and {} bytes is not accepted.", content.len());
            return Err(Refused::new(131_053, details));
        }
        let expires_at = now.plus_seconds(UPLOAD_SECONDS);
        self.insert(id, File { mime_type: mime_type.to_owned(), content, expires_at });
        Ok(())
    }

    /// Removes all files.
    pub(crate) fn lose(&mut self) {
        self.by_id.clear();
        self.order.clear();
    }

    pub(crate) fn get(&self, id: &str, now: Timestamp) -> Option<&File> {
        self.by_id.get(id).filter(|file| now < file.expires_at)
    }
}

/// Returns when a URL created now expires, in seconds since 1970.
pub(crate) fn address_expires(now: Timestamp) -> i64 {
    now.seconds() + ADDRESS_SECONDS
}
