//! The implementation of [`ContactBook`].

use super::identity::{self, Identity, create, fill, put};
use crate::consents::{self, NewConsent};
use crate::handoff::operations::hand_over;
use crate::handoff::waiting::assignee;
use crate::lists::filters::ExactFilters;
use crate::record::consent::ConsentSource;
use crate::record::find::FindContact;
use crate::record::kind::CONTACTS;
use crate::record::merges;
use crate::record::print::APP_URL;
use crate::record::system_fields::AUTOPILOT_CONFIG;
use crate::segments;
use business::Calendar;
use fields::filter::{Condition, Node, Range, Test};
use fields::sort::Sort;
use fields::{FieldType, Filter, Subject, SystemColumn, key};
use model::{ActorType, Cause, Code, ContactId, Error, ItemId, Result, RunId, WorkspaceId};
use ports::{
    Audience, AutoAssignment, BusinessCalendar, ChatIdentity, ConsentStatement, ContactBook, ContactCard,
    ContactRef, ContactUses, HandOver, People, RecordField,
};
use query::{Budget, Planner, Query};
use records::Author;
use records::rows::{self, Editor, ItemRow, live_by_ids};
use records::sets;
use records::shape::{Shape, Shapes};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use store::{Db, Read, Tx};

/// The most contacts to look up by id at once.
const MOST_IDS: usize = 1_000;
/// Attempts to find or create a contact that concurrent transactions change.
const TRIES: usize = 3;
/// The most characters of the proof of a consent.
const LONGEST_PROOF: usize = 2_000;

/// Builds the port. Its planner has no limit on rows, because audiences are read in the background.
pub(crate) fn people(shapes: &Arc<Shapes>, db: &Db, assigned: AutoAssignment, uses: ContactUses) -> People {
    let planner = Planner::new(db.clone());
    let timeout = Duration::from_secs(3_600);
    planner.set_budget(Budget { rows: usize::MAX, bytes: usize::MAX, timeout });
    People(Arc::new(Book { shapes: shapes.clone(), planner, assigned, uses }))
}

struct Book {
    shapes: Arc<Shapes>,
    planner: Planner,
    assigned: AutoAssignment,
    uses: ContactUses,
}

impl Book {
    fn shape(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Arc<Shape>> {
        sets::for_read(read, &self.shapes, workspace, &CONTACTS)
    }

    fn editor(&self, tx: &mut Tx, workspace: WorkspaceId, cause: Cause) -> Result<Editor<'_>> {
        let shape = sets::for_write(tx, &self.shapes, workspace, &CONTACTS)?;
        Ok(Editor::new(&self.shapes, shape, Author::by(workspace, cause)))
    }

    /// Builds the filter of an audience, apart from its list of ids.
    fn filter(&self, read: &mut Read, shape: &Shape, audience: &Audience, param: &str) -> Result<Filter> {
        let mut all = Vec::new();
        if let Some(segment) = audience.segment {
            let filter = segments::filter(read, shape, segment).map_err(|error| match error.code() {
                Code::NotFound => {
                    Error::invalid(format!("{param}.segment_id"), "must be the id of a segment")
                }
                Code::InvalidState => Error::invalid(
                    format!("{param}.segment_id"),
                    "must be the id of a segment whose filter can be used",
                ),
                _ => error,
            });
            all.push(filter?.0);
        }
        if let Some(given) = &audience.exact {
            all.push(ExactFilters::all(shape, given, &format!("{param}.filters"))?);
        }
        if let Some(tree) = &audience.filter {
            let node = Node::from_api(shape, tree, &format!("{param}.filter_tree"))?;
            all.push(Filter::of(shape, &node, read.now())?);
        }
        shape.follow_merges(read, Filter::All(all))
    }

    /// Finds and locks the live contact with an identity.
    fn holder(&self, tx: &mut Tx, shape: &Shape, identity: &Identity) -> Result<Option<ItemRow>> {
        for _ in 0..TRIES {
            let Some(id) = identity.holder(tx, shape)? else { return Ok(None) };
            match rows::find_locked(tx, shape, id)? {
                Some(row) if row.trashed_at.is_none() => return Ok(Some(row)),
                // It was merged or deleted in the meantime, so its identities belong to another contact or to none.
                _ => {}
            }
        }
        Err(Error::internal("the holder of an identity kept changing"))
    }
}

/// Converts a row to a [`ContactCard`].
fn card(shape: &Shape, row: &ItemRow) -> Result<ContactCard> {
    let mut data = row.values()?;
    let says = |key: &str| data.get(key).and_then(Value::as_bool);
    let config = data.get(AUTOPILOT_CONFIG);
    let epoch = config.and_then(|config| config.get("epoch")).and_then(Value::as_i64);
    let run = config.and_then(|config| config.pointer("/changed_by/run_id")).and_then(Value::as_str);
    let switched_by = run.and_then(RunId::parse);
    let (is_opted_out, autopilot) = (says("$opted_out") == Some(true), says("$autopilot") != Some(false));
    let is_blocked = data.get("$status").and_then(Value::as_str) == Some("blocked");
    let assignee = assignee(&data);
    for field in shape.fields.iter().filter(|field| field.hidden) {
        data.shift_remove(&field.key);
    }
    Ok(ContactCard {
        id: row.id.into(),
        app_url: APP_URL,
        is_blocked,
        is_opted_out,
        autopilot,
        epoch: epoch.unwrap_or(0),
        switched_by,
        assignee,
        data,
    })
}

fn cards_of(shape: &Shape, rows: &[ItemRow]) -> Result<Vec<ContactCard>> {
    rows.iter().map(|row| card(shape, row)).collect()
}

/// Replaces the ids of merged contacts by those of their survivors, in the same order.
fn current(read: &mut Read, shape: &Shape, ids: impl Iterator<Item = ItemId> + Clone) -> Result<Vec<ItemId>> {
    let named: Vec<ItemId> = ids.clone().collect();
    let survivors = shape.merged.survivors(read, FieldType::Contact, shape.workspace, &named)?;
    Ok(ids.map(|id| survivors.get(&id).copied().unwrap_or(id)).collect())
}

/// Builds the condition that the id is one of these, which must be sorted.
fn among(ids: &[ItemId]) -> Filter {
    // A range per id, because a test on a system column compares keys of the index.
    let range = |id: &ItemId| {
        let mut bytes = Vec::with_capacity(9);
        key::push_integer(&mut bytes, id.0, false);
        Range::of(bytes)
    };
    let column = SystemColumn::Id;
    let test = Test::Within(ids.iter().map(range).collect());
    Filter::One(Condition { subject: Subject::System(column), family: column.family(), test })
}

impl ContactBook for Book {
    fn find(&self, read: &mut Read, workspace: WorkspaceId, contact: &ContactRef) -> Result<ContactCard> {
        let shape = self.shape(read, workspace)?;
        let row = contact.live(read, &shape)?;
        card(&shape, &row)
    }

    fn ids_of(&self, read: &mut Read, workspace: WorkspaceId, id: ContactId) -> Result<Vec<ContactId>> {
        let survivors = self.survivors(read, workspace, &[id])?;
        let survivor = survivors.into_values().next().unwrap_or(id);
        let merged = merges::merged_into(read, workspace, &[ItemId(survivor.0)])?;
        Ok(std::iter::once(survivor).chain(merged.into_iter().map(ContactId::from)).collect())
    }

    fn survivors(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        ids: &[ContactId],
    ) -> Result<HashMap<ContactId, ContactId>> {
        let ids: Vec<ItemId> = ids.iter().map(|id| ItemId(id.0)).collect();
        let survivors = self.shapes.merged().survivors(read, FieldType::Contact, workspace, &ids)?;
        Ok(survivors.into_iter().map(|(merged, survivor)| (merged.into(), survivor.into())).collect())
    }

    fn cards(&self, read: &mut Read, workspace: WorkspaceId, ids: &[ContactId]) -> Result<Vec<ContactCard>> {
        let shape = self.shape(read, workspace)?;
        let mut all = Vec::with_capacity(ids.len());
        for some in ids.chunks(MOST_IDS) {
            let some: Vec<i64> = some.iter().map(|id| id.0).collect();
            all.extend(cards_of(&shape, &live_by_ids(read, &shape, &some)?)?);
        }
        Ok(all)
    }

    fn fields(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<RecordField>> {
        let shape = self.shape(read, workspace)?;
        Ok(shape.fields.iter().filter(|field| !field.hidden).map(RecordField::from).collect())
    }

    fn lock(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        ids: &BTreeSet<ContactId>,
    ) -> Result<Vec<ContactCard>> {
        // The caller may change these contacts, and the lock order requires the lock on the shape first.
        let shape = sets::for_write(tx, &self.shapes, workspace, &CONTACTS)?;
        let ids: BTreeSet<ItemId> = ids.iter().map(|id| ItemId(id.0)).collect();
        cards_of(&shape, &rows::find_all_locked(tx, &shape, &ids)?)
    }

    fn hold(&self, tx: &mut Tx, workspace: WorkspaceId, ids: &[ContactId]) -> Result<HashSet<ContactId>> {
        let ids: Vec<ItemId> = ids.iter().map(|id| ItemId(id.0)).collect();
        let busy = rows::hold_free(tx, CONTACTS.set_of(workspace), &ids)?;
        Ok(busy.into_iter().map(ContactId::from).collect())
    }

    fn wrote(&self, tx: &mut Tx, workspace: WorkspaceId, contacts: &[ContactId]) -> Result<()> {
        self.uses.wrote(tx, workspace, contacts)
    }

    fn receive_known(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        from: &[ChatIdentity],
    ) -> Result<Vec<Option<ContactCard>>> {
        let shape = sets::for_write(tx, &self.shapes, workspace, &CONTACTS)?;
        let identities: Vec<Identity> = from.iter().map(|from| Identity::of(&shape, from)).collect();
        let holders = identity::holders(tx, &shape, &identities)?;
        let ids: BTreeSet<ItemId> = holders.iter().flatten().copied().collect();
        let rows = rows::find_all_locked(tx, &shape, &ids)?;
        let rows: HashMap<ItemId, ItemRow> = rows.into_iter().map(|row| (row.id, row)).collect();
        let (mut cards, mut left) = (Vec::with_capacity(from.len()), HashSet::new());
        for (identity, holder) in identities.iter().zip(holders) {
            let row = holder.and_then(|holder| rows.get(&holder)).filter(|row| !left.contains(&row.id));
            let known = match row {
                Some(row) if identity.is_held_by(row)? => Some(card(&shape, row)?),
                _ => None,
            };
            left.extend(holder.filter(|_| known.is_none()));
            cards.push(known);
        }
        Ok(cards)
    }

    fn phone(&self, read: &mut Read, workspace: WorkspaceId, text: &str) -> Result<String> {
        let country = Calendar.country(read, workspace)?.and_then(|code| code.parse().ok());
        fields::phone::international(text, country)
            .map_err(|problem| Error::invalid("phone", problem.message))
    }

    fn receive(&self, tx: &mut Tx, workspace: WorkspaceId, from: &ChatIdentity) -> Result<ContactCard> {
        let shape = sets::for_write(tx, &self.shapes, workspace, &CONTACTS)?;
        let identity = Identity::of(&shape, from);
        for _ in 0..TRIES {
            if let Some(row) = self.holder(tx, &shape, &identity)? {
                let author = Author::by(workspace, Cause::actor(ActorType::Contact, &row.id));
                let editor = Editor::new(&self.shapes, shape.clone(), author);
                let row = fill(tx, &editor, row, &identity)?;
                return card(&shape, &row);
            }
            let author = Author::by(workspace, Cause::actor(ActorType::Contact, &identity.name()));
            let editor = Editor::new(&self.shapes, shape.clone(), author);
            // `None` means that a concurrent transaction created the contact.
            if let Some(row) = create(tx, &editor, &identity)? {
                return card(&shape, &row);
            }
        }
        Err(Error::internal("a contact could neither be found nor be created"))
    }

    fn relink(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        old: &ChatIdentity,
        new: &ChatIdentity,
    ) -> Result<Option<ContactId>> {
        let shape = sets::for_write(tx, &self.shapes, workspace, &CONTACTS)?;
        let (old, new) = (Identity::of(&shape, old), Identity::of(&shape, new));
        let Some(row) = self.holder(tx, &shape, &old)? else { return Ok(None) };
        let author = Author::by(workspace, Cause::actor(ActorType::Contact, &row.id));
        let editor = Editor::new(&self.shapes, shape, author);
        let own = row.values()?;
        let row = put(tx, &editor, row, |key| {
            let is_replaced = !own.contains_key(key) || old.is(&editor.shape, key, own.get(key));
            new.value(key).filter(|_| is_replaced)
        })?;
        Ok(Some(row.id.into()))
    }

    fn record_consent(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        contact: ContactId,
        statement: &ConsentStatement,
    ) -> Result<bool> {
        let editor = self.editor(tx, workspace, Cause::actor(ActorType::Contact, &contact))?;
        let row = ContactRef::from(contact).locked(tx, &editor.shape)?;
        let proof: String = statement.proof.chars().take(LONGEST_PROOF).collect();
        let proof = Some(proof).filter(|proof| !proof.trim().is_empty());
        let new = NewConsent { source: ConsentSource::Message, proof };
        consents::store_in_order(tx, &editor, row, statement, new)
    }

    fn hand_over(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        cause: &Cause,
        contact: ContactId,
        switch: &HandOver,
    ) -> Result<()> {
        let editor = self.editor(tx, workspace, cause.clone())?;
        let row = ContactRef::from(contact).locked(tx, &editor.shape)?;
        let until = switch.until.filter(|_| !switch.enabled);
        let switch = HandOver { until, ..switch.clone() };
        hand_over(tx, &editor, row, switch, Some(&self.assigned), |_| {})?;
        Ok(())
    }

    fn check_audience(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        audience: &Audience,
        param: &str,
    ) -> Result<()> {
        let shape = self.shape(read, workspace)?;
        self.filter(read, &shape, audience, param)?;
        let ids: Vec<i64> = audience.ids.iter().flatten().map(|id| id.0).collect();
        for (chunk, some) in ids.chunks(MOST_IDS).enumerate() {
            let current = current(read, &shape, some.iter().copied().map(ItemId))?;
            let wanted: Vec<i64> = current.iter().map(|id| id.0).collect();
            let known: BTreeSet<i64> =
                rows::live_among(read, shape.collection, &wanted)?.into_iter().collect();
            if let Some(place) = wanted.iter().position(|id| !known.contains(id)) {
                let param = format!("{param}.contact_ids[{}]", chunk * MOST_IDS + place);
                return Err(Error::invalid(param, "must be the id of a contact"));
            }
        }
        Ok(())
    }

    fn audience(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        audience: &Audience,
        after: Option<ContactId>,
        most: i64,
    ) -> Result<Vec<ContactCard>> {
        let shape = self.shape(read, workspace)?;
        let filter = self.filter(read, &shape, audience, "audience")?;
        let most = usize::try_from(most).unwrap_or_default();
        let Some(ids) = &audience.ids else {
            let query = Query::new(filter, Sort::of(&[]), false);
            let after = after.map(|after| ItemId(after.0));
            let found = query.behind(read, &self.planner, &shape, after, most)?;
            return cards_of(&shape, &found);
        };
        let ids = current(read, &shape, ids.iter().map(|id| ItemId(id.0)))?;
        let behind: BTreeSet<ItemId> =
            ids.into_iter().filter(|id| after.is_none_or(|after| id.0 > after.0)).collect();
        let behind: Vec<ItemId> = behind.into_iter().collect();
        let mut all = Vec::new();
        for some in behind.chunks(MOST_IDS) {
            let query = Query::new(Filter::All(vec![among(some), filter.clone()]), Sort::of(&[]), false);
            let mut found = query.page(read, &self.planner, &shape, None, MOST_IDS)?.found;
            found.sort_by_key(|found| found.row.id);
            let left = most.saturating_sub(all.len());
            for found in found.iter().take(left) {
                all.push(card(&shape, &found.row)?);
            }
            if all.len() >= most {
                break;
            }
        }
        Ok(all)
    }
}
