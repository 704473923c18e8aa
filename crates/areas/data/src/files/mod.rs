//! Files: the operations over the files of a workspace.

mod events;
mod model;
mod operations;
mod parts;
mod references;
mod upload;

pub(crate) use events::FileEvent;
pub use references::ItemReferences;

use ::operation::Operations;

/// Operations of the area Files.
pub(crate) fn operations() -> Operations {
    vec![
        Box::new(operations::ListMedia),
        Box::new(upload::UploadFile),
        Box::new(upload::ImportFileFromUrl),
        Box::new(parts::CreateUpload),
        Box::new(parts::PutUploadPart),
        Box::new(parts::CompleteUpload),
        Box::new(operations::GetFile),
        Box::new(operations::UpdateFile),
        Box::new(operations::DeleteFile),
    ]
}
