//! Views: saved queries on the items of a collection.
//!
//! A view stores fields by id, so that a deleted field can be detected. Such a view is not valid, and using it is an
//! error: without the field it would show other items.

mod events;
mod model;
mod operations;
mod queries;

pub(crate) use events::ViewEvent;
pub use model::{CollectionView, NewView, ViewKind};
pub use queries::load;
pub(super) use queries::{copy_all, users_of};

use ::operation::Operations;

pub(super) fn operations() -> Operations {
    vec![
        Box::new(operations::ListViews),
        Box::new(operations::CreateView),
        Box::new(operations::GetView),
        Box::new(operations::UpdateView),
        Box::new(operations::DeleteView),
        Box::new(operations::DuplicateView),
    ]
}

pub use operations::create;
