//! Messages of people of the team.

use super::bodies::OperatorMessage;
use super::operations::text;
use super::recipient::channel_for;
use super::result::SendResult;
use super::send::{Sending, What, sender_of};
use crate::channels::ChannelProvider;
use crate::messages::{MessageSenderType, Sender};
use crate::network::Network;
use crate::wakes::Wakes;
use model::{Caller, Code, Error, Result};
use operation::ports::{ContactRef, HandOver, HandoffReason, People};
use operation::{Body, Json, Path, State, operation};
use store::Tx;

/// Answer as a human operator
///
/// Sends a text in the name of a person of the team. If the channel's `takeover_pause_minutes` are set, the autopilot of the
/// contact is paused for that long, so that the agent does not talk in between. Test keys can write over a simulated
/// channel only.
#[operation(post "/contacts/{contactId}/operator-messages", scope = "handoff:manage")]
pub fn send_operator_message(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(body): Body<OperatorMessage>,
    people: State<People>,
    network: State<Network>,
    wakes: State<Wakes>,
) -> Result<Json<SendResult>> {
    let contact = people.0.find(tx, caller.workspace_id(), &contact_id)?;
    let channel = channel_for(tx, caller.workspace_id(), contact.id, body.channel_id)?;
    if !caller.livemode() && channel.provider != ChannelProvider::Simulator {
        let message = "A test key can send messages over a simulated channel only.";
        return Err(Error::new(Code::TestModeRestricted, message));
    }
    let sender = match body.member_id {
        Some(member) => Sender { kind: MessageSenderType::User, id: Some(member.to_string()) },
        None => Sender { kind: MessageSenderType::User, id: sender_of(caller)?.id },
    };
    let sending =
        Sending { caller, people: &people.0, network: &network.0, wakes: &wakes.0, sender, dry_run: false };
    let autopilot = contact.autopilot;
    let what = What::Free(text(body.text, false, body.reply_to));
    let (id, pause) = (contact.id, channel.settings()?.takeover_pause_minutes);
    let sent = sending.send(tx, &channel, Some(contact), what)?;
    if autopilot && pause > 0 {
        let until = Some(tx.now().plus_seconds(pause * 60));
        let switch = HandOver { enabled: false, until, reason: HandoffReason::Operator, summary: None };
        people.0.hand_over(tx, caller.workspace_id(), &caller.cause(), id, &switch)?;
    }
    Ok(Json(sent))
}
