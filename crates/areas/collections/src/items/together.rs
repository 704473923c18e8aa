//! Creates the items of concurrent requests on PostgreSQL. Items of one collection are stored by the same few
//! statements that would store a single item.

use super::answer;
use super::item::Item;
use super::model::NewItem;
use model::{Caller, CollectionId, Result, WorkspaceId};
use operation::{Path, PreparedBody, RawCreated, State, With};
use records::Author;
use records::rows::{Editor, NewItem as ReadyItem, create_ready};
use records::shape::{IndexKind, Shapes};
use std::collections::BTreeMap;
use store::Tx;

/// The inputs of [`create_item`](super::operations::create_item).
type Inputs = (Path<CollectionId>, PreparedBody<NewItem>, State<Shapes>);
type Answer = With<RawCreated<Item<'static>>>;

/// An item to create for a call.
struct New {
    /// The index of the call.
    place: usize,
    author: Author,
    item: ReadyItem,
}

/// Creates the items of those calls that share a collection with another call and whose item was prepared in advance.
/// Any other call gets `None`; it then runs on its own and reports its own error.
pub(super) fn create_items(tx: &mut Tx, calls: &[(&Caller, &Inputs)]) -> Result<Vec<Option<Answer>>> {
    let mut answers: Vec<Option<Answer>> = calls.iter().map(|_| None).collect();
    // Lock the shapes in the order of their ids and before any write, so that concurrent batches cannot deadlock.
    let mut collections: BTreeMap<(CollectionId, WorkspaceId), Vec<usize>> = BTreeMap::new();
    for (place, (caller, (Path(collection), ..))) in calls.iter().enumerate() {
        collections.entry((*collection, caller.workspace_id())).or_default().push(place);
    }
    let mut open = Vec::with_capacity(collections.len());
    for ((collection, _), places) in collections.into_iter().filter(|(_, places)| places.len() > 1) {
        let calls: Vec<_> =
            places.into_iter().filter_map(|place| Some((place, *calls.get(place)?))).collect();
        let Some((_, (caller, (_, _, shapes)))) = calls.first() else { continue };
        match Editor::open(tx, caller, &shapes.0, collection) {
            Ok(editor) => open.push((editor, calls)),
            Err(error) if error.cause().is_some() => return Err(error),
            Err(_) => {}
        }
    }
    for (editor, calls) in open {
        let ready = calls.into_iter().filter_map(|(place, (caller, (_, new, _)))| {
            let item = new.take()?.ready(&editor.shape)?;
            Some(New { place, author: Author::of(caller), item })
        });
        for (place, created) in create(tx, &editor, ready.collect())? {
            if let Some(answer) = answers.get_mut(place) {
                *answer = Some(created);
            }
        }
    }
    Ok(answers)
}

/// Creates items of one collection, and returns each response with the index of its call. Returns nothing if one of
/// the items cannot be created.
fn create(tx: &mut Tx, editor: &Editor<'_>, new: Vec<New>) -> Result<Vec<(usize, Answer)>> {
    let shape = &editor.shape;
    let may_clash = shape.indexes.iter().any(|index| index.kind == IndexKind::Unique)
        || new.iter().any(|new| new.item.has_external_key());
    let (mut authors, mut items) = (Vec::with_capacity(new.len()), Vec::with_capacity(new.len()));
    for New { place, author, item } in new {
        authors.push((place, author));
        items.push(item);
    }
    let items = items.into_iter().zip(authors.iter().map(|(_, author)| author)).collect();
    let rows = match may_clash {
        // The savepoint keeps the items of other collections if one of these violates a unique index.
        true => match tx.savepoint(|tx| create_ready(tx, shape, items)) {
            Ok(rows) => rows,
            Err(_) => return Ok(Vec::new()),
        },
        false => create_ready(tx, shape, items)?,
    };
    let answers = authors.iter().zip(&rows);
    answers.map(|((place, _), row)| Ok((*place, answer::created(shape, row)?))).collect()
}
