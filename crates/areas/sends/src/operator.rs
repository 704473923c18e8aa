//! Messages of people of the team.

use super::bodies::OperatorMessage;
use super::recipient::channel_for;
use super::result::SendResult;
use super::retry::Attempt;
use super::send::{SendParts, Sending, sender_of};
use super::text_or_reply::TextOrReply;
use channels::ChannelProvider;
use conversations::messages::{MessageSenderType, Sender};
use model::{Caller, Code, Error, Result};
use operation::{Body, Json, Path, State, operation};
use ports::{ContactRef, HandOver, HandoffReason, TeamMembers, WorkspaceVariables};
use store::Tx;

/// Answer as a human operator
///
/// Sends a text, a quick reply, or a file in the name of a person of the team. If the channel's `takeover_pause_minutes` are set, the autopilot of the
/// contact is paused for that long, so that the agent does not talk in between. A `member_id` that is of nobody in the team is
/// a 400. A member who has signed in writes in the own name: without `member_id`, or with the own one. Test keys can write over a simulated channel only.
#[operation(post "/contacts/{contactId}/operator-messages", scope = "handoff:manage")]
pub fn send_operator_message(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(body): Body<OperatorMessage>,
    parts: State<SendParts>,
    team: State<TeamMembers>,
    variables: State<WorkspaceVariables>,
) -> Result<Json<SendResult>> {
    let contact = parts.0.people.find(tx, caller.workspace_id(), &contact_id)?;
    let own = caller.principal.member();
    if let (Some(own), Some(member)) = (own, body.member_id)
        && own != member
    {
        return Err(Error::invalid(
            "member_id",
            "must be the id of the member who has signed in, if it is sent",
        ));
    }
    let member = own.or(body.member_id);
    if let Some(member) = member {
        team.0.expect(tx, caller.workspace_id(), member, "member_id")?;
    }
    let channel = channel_for(tx, caller.workspace_id(), contact.id, body.channel_id)?;
    if !caller.livemode() && channel.provider != ChannelProvider::Simulator {
        let message = "A test key can send messages over a simulated channel only.";
        return Err(Error::new(Code::TestModeRestricted, message));
    }
    let sender = match member {
        Some(member) => Sender { kind: MessageSenderType::User, id: Some(member.to_string()) },
        None => Sender { kind: MessageSenderType::User, id: sender_of(caller)?.id },
    };
    let sending = Sending { sender, ..Sending::new(caller, &parts.0, false, Attempt::default())? };
    let message = TextOrReply { attachment: body.attachment.as_ref(), ..body.text_or_reply() };
    let message = (message, false);
    let sent = sending.send_text_or_reply(tx, caller, &channel, &contact, &variables.0, message)?;
    let pause = channel.settings()?.takeover_pause_minutes;
    if contact.autopilot && pause > 0 {
        let until = Some(tx.now().plus_seconds(pause * 60));
        let switch = HandOver { enabled: false, until, reason: HandoffReason::Operator, summary: None };
        parts.0.people.hand_over(tx, caller.workspace_id(), &caller.cause(), contact.id, &switch)?;
    }
    Ok(Json(sent))
}
