//! Invitations: links with which members set a password and sign in.

use super::members::{self, Editor};
use super::model::{MemberPatch, NewMember, TeamMember};
use accounts::links::{self, NewLink, Place};
use accounts::{Email, Secret, memberships};
use model::{Code, Error, MemberRole, Result, WorkspaceId};
use store::Tx;

/// Who is invited.
#[derive(Debug, Clone)]
pub struct Invitation {
    /// The e-mail address.
    pub email: String,
    /// The name of a new member; the e-mail address if not given.
    pub name: Option<String>,
    /// The role. A new member is an `agent` if not given; that of another stays.
    pub role: Option<MemberRole>,
}

/// Issues an invitation, for a member who is added if the team has none with the address. An earlier invitation of the
/// member ends.
///
/// # Errors
/// `validation_error`; `invalid_state` if the member has an account already; the errors of [`members::add`].
pub fn invite(
    tx: &mut Tx,
    workspace: WorkspaceId,
    invitation: &Invitation,
    by: &Editor,
) -> Result<(TeamMember, Secret)> {
    let email = Email::parse(&invitation.email)?;
    let known = members::list(tx, workspace)?
        .into_iter()
        .find(|member| Email::parse(&member.email).is_ok_and(|address| address.key() == email.key()));
    let member = match (known, invitation.role) {
        (Some(member), None) => member,
        (Some(member), role) => {
            let patch = MemberPatch { role, ..MemberPatch::default() };
            members::set(tx, workspace, member.id, patch, by)?
        }
        (None, role) => {
            let name = invitation.name.clone().unwrap_or_else(|| invitation.email.clone());
            let email = invitation.email.clone();
            let new = NewMember { name, email, role: role.unwrap_or_default(), ..NewMember::default() };
            members::add(tx, workspace, new)?
        }
    };
    let place = Place { workspace, member: member.id };
    if memberships::of_member(tx, place)?.is_some() {
        let message = "The member has an account already. `svc operator reset-password` prints a link for a new password.";
        return Err(Error::new(Code::InvalidState, message));
    }
    let secret = links::issue(tx, &NewLink::Invitation(place, email), &by.actor)?;
    Ok((member, secret))
}
