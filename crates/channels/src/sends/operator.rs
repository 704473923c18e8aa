//! Messages of people of the team.

use super::bodies::OperatorMessage;
use super::media::attachment;
use super::operations::{check_interactive, message_type_of, text};
use super::recipient::channel_for;
use super::result::SendResult;
use super::send::{Free, SendParts, Sending, What, sender_of};
use crate::channels::{ChannelProvider, ChannelRow};
use crate::messages::{Detail, Interactive, MessageSenderType, MessageType, Sender};
use crate::quick_replies::{self, Filling, Rendered};
use model::{Caller, Code, Error, MessageId, Result};
use operation::ports::{ContactRef, HandOver, HandoffReason, WorkspaceVariables};
use operation::{Body, Json, Path, State, operation};
use store::Tx;

/// Answer as a human operator
///
/// Sends a text, or a quick reply, in the name of a person of the team. If the channel's `takeover_pause_minutes` are set, the autopilot of the
/// contact is paused for that long, so that the agent does not talk in between. Test keys can write over a simulated
/// channel only.
#[operation(post "/contacts/{contactId}/operator-messages", scope = "handoff:manage")]
pub fn send_operator_message(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(body): Body<OperatorMessage>,
    parts: State<SendParts>,
    variables: State<WorkspaceVariables>,
) -> Result<Json<SendResult>> {
    let contact = parts.0.people.find(tx, caller.workspace_id(), &contact_id)?;
    let channel = channel_for(tx, caller.workspace_id(), contact.id, body.channel_id)?;
    if !caller.livemode() && channel.provider != ChannelProvider::Simulator {
        let message = "A test key can send messages over a simulated channel only.";
        return Err(Error::new(Code::TestModeRestricted, message));
    }
    let sender = match body.member_id {
        Some(member) => Sender { kind: MessageSenderType::User, id: Some(member.to_string()) },
        None => Sender { kind: MessageSenderType::User, id: sender_of(caller)?.id },
    };
    let sending = Sending { sender, ..Sending::new(caller, &parts.0, false)? };
    let autopilot = contact.autopilot;
    let (id, pause) = (contact.id, channel.settings()?.takeover_pause_minutes);
    let messages = match (body.text, body.quick_reply_id) {
        (Some(said), None) => vec![text(said, false, body.reply_to)],
        (None, Some(reply)) => {
            let filling = Filling { contact: &contact, variables: &variables.0, answers: &body.answers };
            let reply = quick_replies::rendered(tx, caller, reply, &filling).map_err(|error| {
                if error.code() == Code::NotFound { error.param("quick_reply_id") } else { error }
            })?;
            said(tx, &sending, &channel, reply, body.reply_to)?
        }
        _ => return Err(Error::invalid("text", "or `quick_reply_id` is required, and not both")),
    };
    let mut first = None;
    for message in messages {
        let sent = sending.send(tx, &channel, Some(contact.clone()), What::Free(Box::new(message)))?;
        first.get_or_insert(sent);
    }
    let sent = first.ok_or_else(|| Error::internal("a quick reply has no message"))?;
    if autopilot && pause > 0 {
        let until = Some(tx.now().plus_seconds(pause * 60));
        let switch = HandOver { enabled: false, until, reason: HandoffReason::Operator, summary: None };
        parts.0.people.hand_over(tx, caller.workspace_id(), &caller.cause(), id, &switch)?;
    }
    Ok(Json(sent))
}

/// The messages of a quick reply: its text with its buttons, and a message for each file.
fn said(
    tx: &mut Tx,
    sending: &Sending<'_>,
    channel: &ChannelRow,
    reply: Rendered,
    reply_to: Option<MessageId>,
) -> Result<Vec<Free>> {
    let mut first = text(reply.body.clone(), false, reply_to);
    if !reply.buttons.is_empty() {
        let interactive =
            Interactive { header: None, body: reply.body, footer: None, buttons: reply.buttons, list: None };
        check_interactive(&interactive)?;
        first.message_type = MessageType::Interactive;
        first.detail = Detail { interactive: Some(interactive), ..Detail::default() };
    }
    let mut all = vec![first];
    for file in reply.attachments {
        let network = sending.parts.network.0.capabilities();
        let attachment = attachment(tx, channel.workspace_id, file, None, network, "quick_reply_id")?;
        let mut message = text(String::new(), false, None);
        message.message_type = message_type_of(attachment.kind);
        message.attachment = Some(attachment);
        all.push(message);
    }
    Ok(all)
}
