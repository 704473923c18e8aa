//! Views: saved ways of looking at a collection's items.
//!
//! A view keeps fields by their ids, so that a field that is gone shows: such a view is not valid, and using it is
//! refused rather than quietly showing other items.

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
