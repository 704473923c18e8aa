//! Operations that query items: list, search, aggregate.

mod aggregate;
mod dated;
mod list;
mod operators;
mod search;

pub(crate) use dated::DatedItems;
use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![
        Box::new(list::ListItems),
        Box::new(search::SearchItems),
        Box::new(aggregate::AggregateItems),
        Box::new(operators::ListItemFilterOperators),
    ]
}
