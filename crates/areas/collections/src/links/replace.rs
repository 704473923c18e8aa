//! The operation that replaces all links of one kind.

use super::events::{LinkData, LinkEvent};
use super::model::{
    ItemLinkReplacement, LinkTarget, LinkTargetType, ReplacedLink, ReplacedLinkStatus, ReplacedLinks,
    ReplacedLinksSummary, ReplacingLink,
};
use super::operations;
use super::targets::{self, Found, LinkWriter};
use fields::Field;
use fields::value::MOST_RELATED;
use model::{Caller, CollectionId, Error, ItemId, Result};
use operation::{Body, Json, Path, State, operation};
use ports::LinkDirectory;
use records::activity::Action;
use records::links::locks::{self, LockSet, hold};
use records::links::relation::{self, New, Others};
use records::links::table::{self, Ends, FREE, ITEM, LinkRow};
use records::rows::{self, Editor, ItemRow};
use records::shape::Shapes;
use std::collections::HashSet;
use store::LockMode;
use store::Tx;

/// Set all links of one kind
///
/// Replaces the links of a relation field, or the free links to objects of one type, optionally with one `role`. Links
/// that are not sent are removed, and the others get the order of the list. The request succeeds or fails as a whole.
#[operation(put "/collections/{collectionId}/items/{itemId}/links", scope = "items:write")]
pub fn replace_item_links(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(wanted): Body<ItemLinkReplacement>,
    shapes: State<Shapes>,
    directory: State<LinkDirectory>,
) -> Result<Json<ReplacedLinks>> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let writer = LinkWriter { writer: editor.writer(), directory: &directory.0 };
    hold(tx, editor.shape.workspace, |tx| ends_of(tx, &writer, item_id, &wanted))?;
    let row = rows::locked(tx, &editor.shape, item_id)?;
    rows::refuse_locked(&row)?;
    refuse_doubles(&wanted.links)?;
    let replaced = match (&wanted.field_key, wanted.kind) {
        (Some(key), None) if wanted.role.is_none() => {
            let field = operations::relation_field(&editor.shape, key, "field_key")?;
            of_field(tx, &writer, &row, field, &wanted.links)?
        }
        (None, Some(kind)) => free(tx, &writer, &row, kind, &wanted)?,
        (Some(_), _) => {
            return Err(Error::invalid("field_key", "cannot be combined with `type` and `role`"));
        }
        (None, None) => {
            return Err(Error::invalid("field_key", "is required, or `type` for free links"));
        }
    };
    Ok(Json(replaced))
}

/// Returns the locks for a replacement: the item, its current targets and the new ones.
fn ends_of(
    tx: &mut Tx,
    writer: &LinkWriter<'_>,
    item: ItemId,
    wanted: &ItemLinkReplacement,
) -> Result<LockSet> {
    let mut locks = LockSet::default();
    locks.add([item], LockMode::Exclusive);
    let field = wanted.field_key.as_deref().and_then(|key| writer.shape.field(key));
    let ends =
        field.map(|field| relation::ends(tx, writer.shapes, writer.shape, field)).transpose()?.flatten();
    let mode = ends.as_ref().map_or(LockMode::Shared, Ends::mode);
    locks.add(wanted.links.iter().filter_map(|link| link.to.item()), mode);
    let existing = match &ends {
        Some(ends) => table::pointed_to(tx, item, ends.field, MOST_RELATED + 1)?,
        None => {
            let links = table::free_links(tx, item, ITEM, wanted.role.as_deref(), MOST_RELATED + 1)?;
            links.iter().filter_map(LinkRow::item).collect()
        }
    };
    // A field with more links cannot be replaced, so the request will fail.
    if existing.len() <= MOST_RELATED {
        locks.add(existing, mode);
    }
    Ok(locks)
}

fn refuse_doubles(links: &[ReplacingLink]) -> Result<()> {
    let mut seen: HashSet<&LinkTarget> = HashSet::new();
    match links.iter().position(|link| !seen.insert(&link.to)) {
        Some(place) => Err(Error::invalid(format!("links[{place}].to"), "must not be sent twice")),
        None => Ok(()),
    }
}

/// Replaces the links of a relation field.
fn of_field(
    tx: &mut Tx,
    writer: &LinkWriter<'_>,
    row: &ItemRow,
    field: &Field,
    links: &[ReplacingLink],
) -> Result<ReplacedLinks> {
    let ends = relation::ends(tx, writer.shapes, writer.shape, field)?
        .ok_or_else(|| Error::invalid("field_key", "refers to no collection"))?;
    if ends.one && links.len() > 1 {
        return Err(Error::invalid("links", "must have at most one link for this field"));
    }
    let mut wanted = Vec::with_capacity(links.len());
    for (place, link) in links.iter().enumerate() {
        let at = format!("links[{place}].to");
        let to = operations::related(tx, writer, row, &ends, &link.to, &at)?;
        let found = Found { kind: LinkTargetType::Item, collection: Some(ends.target), id: to.to_string() };
        wanted.push(Wanted { found, role: link.role.as_deref(), note: link.note.as_deref() });
    }
    if table::pointed_to(tx, row.id, field.id, MOST_RELATED + 1)?.len() > MOST_RELATED {
        let rule = "has more than 1,000 links, which cannot be replaced in one request";
        return Err(Error::invalid("field_key", rule));
    }
    let existing = table::live_rows(tx, field.id, &[row.id])?;
    Set { writer, row, ends: Some(ends), wanted, existing }.make(tx)
}

/// Replaces the free links to objects of a type.
fn free(
    tx: &mut Tx,
    writer: &LinkWriter<'_>,
    row: &ItemRow,
    kind: LinkTargetType,
    request: &ItemLinkReplacement,
) -> Result<ReplacedLinks> {
    let existing = table::free_links(tx, row.id, kind, request.role.as_deref(), MOST_RELATED + 1)?;
    if existing.len() > MOST_RELATED {
        return Err(Error::invalid(
            "type",
            "has more than 1,000 links, which cannot be replaced in one request",
        ));
    }
    let mut wanted = Vec::with_capacity(request.links.len());
    for (place, link) in request.links.iter().enumerate() {
        let at = format!("links[{place}].to");
        if link.to.kind != kind {
            return Err(Error::invalid(format!("{at}.type"), format!("must be `{}`", kind.as_str())));
        }
        let role = link.role.as_deref().or(request.role.as_deref());
        if request.role.is_some() && role != request.role.as_deref() {
            return Err(Error::invalid(format!("links[{place}].role"), "must be the role of the request"));
        }
        let found = targets::find(tx, writer.directory, writer.author.workspace, &link.to, &at)?;
        if let Some((_, id)) = found.item() {
            operations::refuse_self(row, id, &at)?;
        }
        if let Some(other) = table::between(tx, row.id, FREE, kind, &found.id)?
            && !existing.iter().any(|link| link.id == other.id)
        {
            return Err(targets::twice(&other).param(at));
        }
        wanted.push(Wanted { found, role, note: link.note.as_deref() });
    }
    Set { writer, row, ends: None, wanted, existing }.make(tx)
}

/// A link of the new set.
struct Wanted<'a> {
    found: Found,
    role: Option<&'a str>,
    note: Option<&'a str>,
}

/// The current and the wanted links of one kind.
struct Set<'a> {
    writer: &'a LinkWriter<'a>,
    row: &'a ItemRow,
    /// The relation field, or `None` for free links.
    ends: Option<Ends>,
    wanted: Vec<Wanted<'a>>,
    existing: Vec<LinkRow>,
}

impl Set<'_> {
    fn make(&self, tx: &mut Tx) -> Result<ReplacedLinks> {
        let (removed, added): (Vec<&LinkRow>, Vec<&Wanted<'_>>) = (
            self.existing.iter().filter(|link| !self.is_wanted(link)).collect(),
            self.wanted.iter().filter(|wanted| self.existing_to(&wanted.found).is_none()).collect(),
        );
        let others = self.others(&removed, &added);
        if let Some(ends) = &self.ends
            && ends.reverse.is_some()
        {
            let ids: Vec<ItemId> = others.iter().map(|(_, id)| *id).collect();
            locks::live(tx, self.writer.author.workspace, ends.target, &ids, LockMode::Exclusive)?;
        }
        self.remove(tx, &removed)?;
        self.add(tx, &added)?;
        let results = self.arrange(tx)?;
        let count = |status| results.iter().filter(|result| result.status == status).count();
        let summary = ReplacedLinksSummary {
            created: number(count(ReplacedLinkStatus::Created)),
            updated: number(count(ReplacedLinkStatus::Updated)),
            unchanged: number(count(ReplacedLinkStatus::Unchanged)),
            deleted: number(removed.len()),
        };
        if self.ends.is_some() && summary.unchanged < number(results.len() + removed.len()) {
            let action = if added.is_empty() { Action::Unlinked } else { Action::Linked };
            self.writer.relinked(tx, self.row, others, action)?;
        }
        for wanted in added {
            if let Some(link) = self.stored(tx, &wanted.found)? {
                let link = operations::shown(tx, self.writer, link)?;
                operations::publish(tx, self.writer, &LinkEvent::Created(LinkData { link: &link }))?;
            }
        }
        Ok(ReplacedLinks { summary, results })
    }

    fn is_wanted(&self, link: &LinkRow) -> bool {
        self.wanted.iter().any(|wanted| wanted.found.id == link.to_id)
    }

    fn existing_to(&self, found: &Found) -> Option<&LinkRow> {
        self.existing.iter().find(|link| link.to_id == found.id)
    }

    /// Returns the items at the other end whose reverse field shows these links.
    fn others(&self, removed: &[&LinkRow], added: &[&Wanted<'_>]) -> Others {
        let Some(ends) = self.ends.filter(|ends| ends.reverse.is_some()) else { return Others::new() };
        let gone = removed.iter().filter_map(|link| link.item());
        let new = added.iter().filter_map(|wanted| wanted.found.item()).map(|(_, id)| id);
        let mut ids: Vec<ItemId> = gone.chain(new).collect();
        ids.sort_unstable();
        ids.into_iter().map(|id| (ends.target, id)).collect()
    }

    fn remove(&self, tx: &mut Tx, removed: &[&LinkRow]) -> Result<()> {
        for link in removed {
            let shown = operations::shown(tx, self.writer, (*link).clone())?;
            match (&self.ends, link.item()) {
                (Some(ends), Some(to)) => table::delete(tx, self.row.id, ends.field, ends.back(), &[to])?,
                _ => operations::remove_free(tx, self.writer, link)?,
            }
            operations::publish(tx, self.writer, &LinkEvent::Deleted(LinkData { link: &shown }))?;
        }
        Ok(())
    }

    fn add(&self, tx: &mut Tx, added: &[&Wanted<'_>]) -> Result<()> {
        if let Some(ends) = &self.ends {
            let mut new = Vec::with_capacity(added.len());
            for wanted in added {
                let Some((_, to)) = wanted.found.item() else { continue };
                new.push(New { to, role: wanted.role, note: wanted.note, position: None });
            }
            return relation::connect(tx, self.writer, self.row, ends, &new);
        }
        for wanted in added {
            let words = (wanted.role, wanted.note);
            operations::insert_free(tx, self.writer, self.row, &wanted.found, words, 0)?;
        }
        Ok(())
    }

    /// Sets the position, role and note of each link, and reports what changed.
    fn arrange(&self, tx: &mut Tx) -> Result<Vec<ReplacedLink>> {
        let mut results = Vec::with_capacity(self.wanted.len());
        for (index, wanted) in (0..).zip(&self.wanted) {
            let stored = self
                .stored(tx, &wanted.found)?
                .ok_or_else(|| Error::internal("a link that was stored is not there"))?;
            let is_new = self.existing_to(&wanted.found).is_none();
            let same_words = stored.role.as_deref() == wanted.role && stored.note.as_deref() == wanted.note;
            let status = match (is_new, same_words && stored.position == index) {
                (true, _) => ReplacedLinkStatus::Created,
                (false, true) => ReplacedLinkStatus::Unchanged,
                (false, false) => ReplacedLinkStatus::Updated,
            };
            if !same_words || stored.position != index {
                table::revise(tx, &stored, wanted.role, wanted.note, index)?;
            }
            if let (false, Some((back, _)), Some(to)) =
                (same_words, self.ends.and_then(|ends| ends.reverse), stored.item())
                && let Some(mirror) = table::between(tx, to, back, ITEM, &self.row.id.to_string())?
            {
                table::revise(tx, &mirror, wanted.role, wanted.note, mirror.position)?;
            }
            results.push(ReplacedLink { index, status, id: stored.id });
        }
        Ok(results)
    }

    fn stored(&self, tx: &mut Tx, found: &Found) -> Result<Option<LinkRow>> {
        let field = self.ends.map_or(FREE, |ends| ends.field);
        table::between(tx, self.row.id, field, found.kind, &found.id)
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
