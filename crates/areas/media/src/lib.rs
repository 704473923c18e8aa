//! The API of files: uploads, changes and the trash. The crate `files` stores them.

mod events;
mod group;
mod model;
mod operations;
mod parts;
mod upload;

pub use group::GROUP;

use ::operation::{Domain, EventType, Operations};
use events::FileEvent;

/// The area of files.
pub struct Media;

impl Domain for Media {
    const AREA: &'static str = "Files";
    const ORDER: u16 = 90;
    const DESCRIPTION: &'static str = "Files are stored once and used everywhere: in items, comments and imports. Upload them in one \
         request or in parts, or fetch them from a URL. Each file has a permanent link and a signed link.";

    fn operations() -> Operations {
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

    fn event_types() -> Vec<EventType> {
        EventType::of::<FileEvent>()
    }
}
