//! Validation of broadcasts: of what is set when a draft is stored, and of everything before it is sent.

use crate::checks::clock::Clock;
use crate::checks::limit;
use crate::checks::list_file;
use crate::model::{BroadcastAudience, BroadcastExclusion, BroadcastPauseReason, BroadcastTemplate};
use crate::rows::row::{self, BroadcastRow};
use crate::rows::template::{check_params, expect_params};
use channels::ChannelRow;
use channels::templates::{self, TemplateRow};
use chatnet::{Quality, TemplateComponents, TemplateStatus};
use chrono_tz::Tz;
use conversations::messages::NewAttachment;
use model::{ChannelId, Code, Error, Result, Timestamp, WorkspaceId};
use ports::{Audience, People};
use sends::SendParts;
use serde_json::json;
use store::{Read, Tx};

/// The tolerance for a `send_at` in the past, in seconds.
const LATE_SECONDS: i64 = 60;

/// Returns the conditions of an audience, except its file.
pub(crate) fn included(audience: &BroadcastAudience) -> Audience {
    Audience {
        segment: audience.segment_id,
        exact: audience.filters.clone(),
        filter: audience.filter_tree.clone(),
        ids: audience.contact_ids.clone(),
    }
}

/// Returns the conditions of an exclusion. A contact that matches any of them is excluded.
pub(crate) fn excluded(exclusion: &BroadcastExclusion) -> Vec<Audience> {
    let segment = exclusion.segment_id.map(|id| Audience { segment: Some(id), ..Audience::default() });
    let exact = exclusion.filters.clone().map(|all| Audience { exact: Some(all), ..Audience::default() });
    let filter = &exclusion.filter_tree;
    let filter = filter.clone().map(|tree| Audience { filter: Some(tree), ..Audience::default() });
    let ids = exclusion.contact_ids.clone().map(|ids| Audience { ids: Some(ids), ..Audience::default() });
    [segment, exact, filter, ids].into_iter().flatten().collect()
}

/// Locks the files of a draft, so that they are not deleted before the draft is stored.
pub(crate) fn hold_files(tx: &mut Tx, row: &BroadcastRow) -> Result<()> {
    let media = row.template()?.and_then(|template| template.media);
    let list = row.audience()?.and_then(|audience| audience.file_id);
    let files: Vec<_> = media.into_iter().chain(list).collect();
    files::held(tx, row.workspace_id, &files).map(drop)
}

/// Validates the parts of a draft that are set; others may still be missing.
///
/// # Errors
/// `validation_error`, `unknown_variable`, and `not_found` for the channel.
pub(crate) fn draft(read: &mut Read, parts: &SendParts, row: &BroadcastRow) -> Result<()> {
    let workspace = row.workspace_id;
    if let Some(channel) = row.channel_id {
        channels::live(read, workspace, channel).map_err(|error| error.param("channel_id"))?;
    }
    if let Some(template) = row.template()? {
        check_params(&template)?;
        parts.header_file(read, row.workspace_id, template.media, MEDIA)?;
    }
    if let Some(audience) = row.audience()? {
        check_audience(read, &parts.people, workspace, &audience)?;
    }
    let Some(schedule) = row.schedule()? else { return Ok(()) };
    if let Some(zone) = &schedule.time_zone {
        let zone: Result<Tz, _> = zone.parse();
        let rule = "must be a time zone such as `Europe/Madrid`";
        zone.map_err(|_| Error::invalid("schedule.time_zone", rule))?;
    } else if schedule.contact_local_time || schedule.quiet_hours.is_some() {
        let rule = "is required with `contact_local_time` and `quiet_hours`";
        return Err(Error::invalid("schedule.time_zone", rule));
    }
    if schedule.quiet_hours.is_some_and(|quiet| quiet.from == quiet.to) {
        return Err(Error::invalid("schedule.quiet_hours.to", "must be another time than `from`"));
    }
    Ok(())
}

fn check_audience(
    read: &mut Read,
    people: &People,
    workspace: WorkspaceId,
    audience: &BroadcastAudience,
) -> Result<()> {
    people.check_audience(read, workspace, &included(audience), "audience")?;
    audience.file_id.map(|file| list_file::file(read, workspace, file)).transpose()?;
    let Some(exclusion) = &audience.exclude else { return Ok(()) };
    for conditions in excluded(exclusion) {
        people.check_audience(read, workspace, &conditions, "audience.exclude")?;
    }
    if let Some(other) = exclusion.broadcast_id {
        let param = "audience.exclude.broadcast_id";
        row::find(read, workspace, other)
            .map_err(|_| Error::invalid(param, "must be the id of a broadcast"))?;
    }
    Ok(())
}

/// The parameter of the file in the header of the template.
const MEDIA: &str = "template.media";

/// Finds the template of a broadcast on its channel.
///
/// # Errors
/// `template_not_found`, or `validation_error` without a channel.
pub(crate) fn template(
    read: &mut Read,
    row: &BroadcastRow,
    wanted: &BroadcastTemplate,
) -> Result<TemplateRow> {
    let channel = row.channel_id.ok_or_else(|| Error::invalid("channel_id", "is required"))?;
    let namespace = wanted.namespace.as_deref();
    let named = templates::named(read, channel, namespace, &wanted.name, &wanted.language);
    named.map_err(|error| error.param("template.name"))
}

/// Chooses a channel for a broadcast without one.
///
/// # Errors
/// `validation_error` without a template, `no_channel`.
pub(crate) fn choose_channel(read: &mut Read, row: &mut BroadcastRow) -> Result<ChannelId> {
    if let Some(channel) = row.channel_id {
        return Ok(channel);
    }
    let wanted = row.template()?.ok_or_else(|| Error::invalid("template", "is required"))?;
    let template = Some((wanted.name.as_str(), wanted.language.as_str()));
    Ok(row.channel_id.insert(channels::first(read, row.workspace_id, template)?.id).to_owned())
}

/// The parts that are needed to send a broadcast.
pub(crate) struct Ready {
    pub(crate) channel: ChannelRow,
    pub(crate) wanted: BroadcastTemplate,
    pub(crate) template: TemplateRow,
    pub(crate) components: TemplateComponents,
    /// The file above the text.
    pub(crate) attachment: Option<NewAttachment>,
}

impl Ready {
    /// Loads the parts of a broadcast in any state.
    ///
    /// # Errors
    /// `validation_error` for a missing part, `template_not_found`, or `not_found` for the file.
    pub(crate) fn of(read: &mut Read, parts: &SendParts, row: &BroadcastRow) -> Result<Self> {
        let channel = row.channel_id.ok_or_else(|| Error::invalid("channel_id", "is required"))?;
        let wanted = row.template()?.ok_or_else(|| Error::invalid("template", "is required"))?;
        let channel = channels::live(read, row.workspace_id, channel)?;
        let template = template(read, row, &wanted)?;
        let components = template.components()?;
        let attachment = parts.header_file(read, row.workspace_id, wanted.media, MEDIA)?;
        Ok(Self { channel, wanted, template, components, attachment })
    }

    /// Returns the reason why nothing can be sent at this moment.
    pub(crate) fn obstacle(&self) -> Option<BroadcastPauseReason> {
        if !self.channel.status.can_send() {
            Some(BroadcastPauseReason::ChannelDisconnected)
        } else if self.template.status != TemplateStatus::Approved {
            Some(BroadcastPauseReason::TemplateNotApproved)
        } else if self.channel.quality == Quality::Low {
            Some(BroadcastPauseReason::QualityLow)
        } else {
            None
        }
    }

    /// Checks that messages can be sent.
    ///
    /// # Errors
    /// `channel_disconnected`, `template_not_approved`, `template_params_mismatch`.
    pub(crate) fn expect_sendable(&self) -> Result<()> {
        self.channel.expect_connected().map_err(|error| error.param("channel_id"))?;
        if self.template.status != TemplateStatus::Approved {
            let status = self.template.status.as_str();
            let message = format!("The network has not approved the message template: it is {status}.");
            return Err(Error::new(Code::TemplateNotApproved, message)
                .param("template.name")
                .with("details", json!({ "status": status })));
        }
        expect_params(&self.components, &self.wanted)
    }
}

/// Checks that a broadcast is complete.
///
/// # Errors
/// The errors of [`Ready::of`] and [`draft`], and `validation_error` without an audience.
pub(crate) fn complete(
    read: &mut Read,
    parts: &SendParts,
    row: &BroadcastRow,
) -> Result<(Ready, BroadcastAudience)> {
    let ready = Ready::of(read, parts, row)?;
    let audience = row.audience()?;
    let is_set = |audience: &BroadcastAudience| {
        audience.file_id.is_some() || included(audience) != Audience::default()
    };
    let audience = audience.filter(is_set).ok_or_else(|| Error::invalid("audience", "is required"))?;
    draft(read, parts, row)?;
    expect_params(&ready.components, &ready.wanted)?;
    Ok((ready, audience))
}

/// Checks that a broadcast can be started now, or at its scheduled time.
///
/// # Errors
/// The errors of [`complete`] and [`Ready::expect_sendable`], `validation_error`, and `empty_audience`.
pub(crate) fn startable(read: &mut Read, parts: &SendParts, row: &BroadcastRow, now: bool) -> Result<()> {
    let (ready, audience) = complete(read, parts, row)?;
    let schedule = row.schedule()?;
    if let Some(schedule) = &schedule {
        let is_past = |send_at| send_at < read.now().plus_seconds(-LATE_SECONDS);
        if !now && schedule.send_at.is_some_and(is_past) {
            return Err(Error::invalid("schedule.send_at", "must not be in the past"));
        }
        if schedule.contact_local_time && schedule.send_at.is_none() {
            return Err(Error::invalid("schedule.send_at", "is required with `contact_local_time`"));
        }
    }
    ready.expect_sendable()?;
    let is_now = now || Clock::of(schedule.as_ref()).starts_at().is_none_or(|at| at <= read.now());
    // The audience of a scheduled broadcast may still be empty, and a file is only read when recipients are prepared.
    let is_known = is_now && audience.file_id.is_none();
    let first = |read| parts.people.audience(read, row.workspace_id, &included(&audience), None, 1);
    if is_known && first(read)?.is_empty() {
        return Err(Error::new(Code::EmptyAudience, "No contact fits the audience.").param("audience"));
    }
    Ok(())
}

/// Checks that the cause of a pause is over. Failures of messages are not checked: the caller decides to resume in
/// spite of them.
///
/// # Errors
/// The errors of [`Ready::of`] and [`Ready::expect_sendable`], or `invalid_state` for other causes.
pub(crate) fn resumable(read: &mut Read, parts: &SendParts, row: &BroadcastRow) -> Result<()> {
    let ready = Ready::of(read, parts, row)?;
    ready.expect_sendable()?;
    let still = |message: &str, reason: BroadcastPauseReason, resumes_at: Option<Timestamp>| {
        let details = json!({ "state": row.status, "pause_reason": reason, "resumes_at": resumes_at });
        Err(Error::new(Code::InvalidState, message).with("details", details))
    };
    if let Some(reason) = ready.obstacle() {
        return still("The network still rates the quality of the number as low.", reason, None);
    }
    if row.prepared_at.is_none()
        && let Some(audience) = row.audience()?
        && check_audience(read, &parts.people, row.workspace_id, &audience).is_err()
    {
        let message = "The audience still cannot be read.";
        return still(message, BroadcastPauseReason::AudienceInvalid, None);
    }
    let limit = row.pause_reason == Some(BroadcastPauseReason::MessagingLimit);
    let frees_at = if limit { limit::frees_at(read, row, &ready.channel)? } else { None };
    if frees_at.is_some_and(|at| at > read.now()) {
        let message = "The number still may not write to more contacts.";
        return still(message, BroadcastPauseReason::MessagingLimit, frees_at);
    }
    Ok(())
}
