//! Files for imports.

use bytes::Bytes;
use files::{Files, NewFile};
use futures::stream;
use model::{Cause, FileId, WorkspaceId};
use testkit::TestApp;

/// Stores bytes as a file and returns its id.
pub async fn bytes(app: &TestApp, workspace: WorkspaceId, name: &str, bytes: Vec<u8>) -> FileId {
    let files = app.service.pipeline.services.get::<Files>().unwrap();
    let uploaded_by = Cause::system("test").actor;
    let new = NewFile { name: name.to_owned(), most_bytes: 1 << 20, workspace, uploaded_by };
    let stream = stream::iter([Ok::<_, std::io::Error>(Bytes::from(bytes))]);
    files.store(app.db(), new, stream).await.unwrap().id
}
