//! Previews: the number of recipients, and some of the messages. Nothing is stored.

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

/// The number of contacts, or lines of a file, after which a preview stops.
const MOST: i64 = 100_000;
/// The number of messages to show.
const SHOWN: usize = 3;

/// Checks that a draft is complete, and chooses its channel.
///
/// # Errors
/// The errors of [`check::choose_channel`] and [`check::complete`].
pub(crate) fn completed(
    read: &mut Read,
    parts: &SendParts,
    mut row: BroadcastRow,
) -> Result<(BroadcastRow, ChannelId)> {
    let channel = check::choose_channel(read, &mut row)?;
    check::complete(read, parts, &row)?;
    Ok((row, channel))
}

/// Counts the recipients of a complete broadcast.
///
/// # Errors
/// `validation_error` if the file with the audience cannot be read.
pub(crate) async fn of(
    db: &Db,
    parts: &SendParts,
    (mut row, channel): (BroadcastRow, ChannelId),
) -> Result<BroadcastPreview> {
    let mut tally = Tally::default();
    // Count from the beginning, as if the broadcast were prepared now.
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

/// The counts so far.
#[derive(Default)]
struct Tally {
    /// The number of contacts, and of lines of a file.
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
            // A file can list a contact in several chunks.
            if self.contacts.insert(recipient.contact_id) {
                self.seen += 1;
                self.add_recipient(&ready, recipient)?;
            }
        }
        Ok(())
    }

    /// Counts a contact in the way in which it would be stored: the second contact with the same address is skipped.
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
