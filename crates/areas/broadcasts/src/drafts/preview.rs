//! Previews: who would get a broadcast, and what they would read. Nothing is stored.

use crate::checks::check::{self, Ready};
use crate::model::preview::{BroadcastPreview, BroadcastPreviewMessage, BroadcastSkipCount};
use crate::model::states::BroadcastSkipReason as Skip;
use crate::rows::row::{BroadcastRow, NewRecipient};
use crate::rows::template::FrozenParams;
use crate::sending::prepare::{self, Contacts};
use model::{ChannelId, ContactId, JsonText, Result};
use sends::SendParts;
use std::collections::{BTreeMap, HashSet};
use store::{Db, Read};

/// A preview ends after so many contacts, or lines of a file.
const MOST: i64 = 100_000;
/// So many messages are shown.
const SHOWN: usize = 3;

/// Makes sure that a draft is complete, and chooses its channel.
///
/// # Errors
/// What is missing, or makes no sense.
pub(crate) fn completed(
    read: &mut Read,
    parts: &SendParts,
    mut row: BroadcastRow,
) -> Result<(BroadcastRow, ChannelId)> {
    let channel = check::choose_channel(read, &mut row)?;
    check::complete(read, parts, &row)?;
    Ok((row, channel))
}

/// Counts who would get a broadcast that is complete.
///
/// # Errors
/// `validation_error` where the file that lists the audience cannot be read.
pub(crate) async fn of(
    db: &Db,
    parts: &SendParts,
    (mut row, channel): (BroadcastRow, ChannelId),
) -> Result<BroadcastPreview> {
    let mut tally = Tally::default();
    // It is counted as the broadcast would be prepared now, from the beginning.
    (row.prepared_to, row.prepared_bytes) = (None, 0);
    loop {
        let piece = prepare::read(db, parts.clone(), row.clone()).await?;
        let is_end = piece.is_end;
        row.prepared_to = piece.last.or(row.prepared_to);
        row.prepared_bytes = piece.bytes;
        let (parts, of) = (parts.clone(), row.clone());
        let add = db.read(move |read| {
            tally.add(read, &parts, &of, &piece)?;
            Ok(tally)
        });
        tally = add.await?;
        if is_end || tally.seen >= MOST {
            return Ok(tally.preview(channel, is_end));
        }
    }
}

/// What was counted so far.
#[derive(Default)]
struct Tally {
    /// Contacts, and lines of a file.
    seen: i64,
    recipients: i64,
    failing: i64,
    skipped: BTreeMap<&'static str, (Skip, i64)>,
    unmatched: i64,
    contradictory: i64,
    messages: Vec<BroadcastPreviewMessage>,
    contacts: HashSet<ContactId>,
    addresses: HashSet<String>,
}

impl Tally {
    fn add(
        &mut self,
        read: &mut Read,
        parts: &SendParts,
        row: &BroadcastRow,
        piece: &Contacts,
    ) -> Result<()> {
        let ready = Ready::of(read, parts, row)?;
        let lines = piece.lines.unwrap_or_default();
        self.unmatched += lines.unmatched;
        self.contradictory += lines.contradictory;
        self.seen += lines.listed + lines.unmatched + lines.contradictory;
        for recipient in prepare::recipients(read, row, &piece.cards)? {
            // A file may list a contact in several pieces.
            if self.contacts.insert(recipient.contact_id) {
                self.seen += 1;
                self.add_recipient(&ready, recipient)?;
            }
        }
        Ok(())
    }

    /// Counts a contact as it would be stored: the second one with an address is left out.
    fn add_recipient(&mut self, ready: &Ready, new: NewRecipient) -> Result<()> {
        let mut skip = new.skip_reason;
        if skip.is_none() && new.address.clone().is_some_and(|address| !self.addresses.insert(address)) {
            skip = Some(Skip::DuplicateAddress);
        }
        if let Some(reason) = skip {
            self.skipped.entry(reason.as_str()).or_insert((reason, 0)).1 += 1;
            return Ok(());
        }
        let params: FrozenParams = new.params.as_ref().map(JsonText::parse).transpose()?.unwrap_or_default();
        match ready.components.resolve(&params.sent(&ready.wanted, &ready.template.namespace)) {
            Ok(message) => {
                self.recipients += 1;
                if self.messages.len() < SHOWN {
                    let (contact_id, address) = (new.contact_id, new.address);
                    self.messages.push(BroadcastPreviewMessage { contact_id, address, message });
                }
            }
            Err(_) => self.failing += 1,
        }
        Ok(())
    }

    fn preview(self, channel_id: ChannelId, complete: bool) -> BroadcastPreview {
        let skip_reasons: Vec<BroadcastSkipCount> =
            self.skipped.into_values().map(|(reason, count)| BroadcastSkipCount { reason, count }).collect();
        BroadcastPreview {
            object: "broadcast_preview",
            channel_id,
            recipients: self.recipients,
            failing: self.failing,
            skipped: skip_reasons.iter().map(|one| one.count).sum(),
            skip_reasons,
            unmatched: self.unmatched,
            contradictory: self.contradictory,
            messages: self.messages,
            complete,
        }
    }
}
