//! Operations of the dashboard on the team: invitations, roles, and the own availability.

use super::invitations::{self, Invitation};
use super::members::{self, Editor};
use super::model::{Availability, AvailabilityStatus, MemberPatch, TeamMember};
use accounts::Actor;
use accounts::links::{self, Link, Place, Purpose};
use auth::roles;
use model::{Caller, Code, Error, MemberId, MemberRole, MemberSession, Patch, Result, Timestamp};
use operation::{BaseUrl, Body, Created, Deleted, Json, Path, Rows, State, operation};
use serde::{Deserialize, Serialize};
use store::{Read, Tx};
use utoipa::ToSchema;

/// An invitation that was not accepted yet.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "email": "leo@example.com", "name": "Leo Vidal", "role": "agent" }))]
pub struct TeamInvitation {
    /// The id of the member who is invited.
    pub id: MemberId,
    /// Always `invitation`.
    pub object: &'static str,
    /// The e-mail address.
    pub email: String,
    /// The name of the member.
    pub name: String,
    /// The role that the member will have.
    pub role: MemberRole,
    /// Until when the invitation can be accepted.
    pub expires_at: Timestamp,
    /// When the object was created.
    pub created_at: Timestamp,
}

/// A new invitation, with its link.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "url": "https://svc.example/invite/7c1f0e9d8b6a5f4e3d2c1b0a7c1f0e9d8b6a5f4e3d2c1b0a" }))]
pub struct CreatedInvitation {
    /// The invitation.
    #[serde(flatten)]
    pub invitation: TeamInvitation,
    /// The link with which the member signs in for the first time. It works once, within 7 days, and cannot be shown again.
    pub url: String,
}

/// Who is invited.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "email": "leo@example.com", "name": "Leo Vidal", "role": "agent" }))]
pub struct NewInvitation {
    /// The e-mail address.
    #[schema(format = "email", max_length = 254)]
    pub email: String,
    /// The name of a new member; the e-mail address if not given.
    #[schema(min_length = 1, max_length = 120, nullable = false)]
    pub name: Option<String>,
    /// The role. A new member is an `agent` if not given; that of another stays.
    #[schema(nullable = false)]
    pub role: Option<MemberRole>,
}

/// Changes to a member. What is not given stays.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "role": "manager", "capacity": 20 }))]
pub struct TeamMemberPatch {
    /// The name.
    #[schema(min_length = 1, max_length = 120, nullable = false)]
    pub name: Option<String>,
    /// What the member may do.
    #[schema(nullable = false)]
    pub role: Option<MemberRole>,
    /// The most conversations that are assigned to the member at a time; `null` for any number.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 10000)]
    pub capacity: Patch<i64>,
}

/// Whether the member takes work.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "status": "away" }))]
pub struct OwnAvailability {
    /// Whether the member takes work.
    pub status: AvailabilityStatus,
    /// When the member is `online` again. Not for `online`.
    #[schema(nullable = false)]
    pub until: Option<Timestamp>,
}

/// Invitations that were not accepted yet
///
/// Lists the invitations of the workspace that still work, oldest first.
#[operation(get "/dashboard/invitations", session = "team:manage")]
pub fn list_invitations(read: &mut Read, caller: &Caller) -> Result<Rows<TeamInvitation>> {
    let links = links::invitations(read, caller.workspace_id())?;
    links.into_iter().filter_map(|link| shown(read, link).transpose()).collect::<Result<_>>().map(Rows)
}

/// Invite a member
///
/// The response has the link, which works once, within 7 days, and cannot be shown again. Adds the member if the team has none with
/// the e-mail address. An earlier invitation of the member ends. Owners are invited by owners. Needs a recent sign-in.
#[operation(post "/dashboard/invitations", session = "team:manage", recent_sign_in = always)]
pub fn create_invitation(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewInvitation>,
    base_url: State<BaseUrl>,
) -> Result<Created<CreatedInvitation>> {
    let own = caller.member()?;
    let workspace = caller.workspace_id();
    expect_may_set(own, new.role.unwrap_or_default())?;
    let invitation = Invitation { email: new.email, name: new.name, role: new.role };
    let before = members::list(tx, workspace)?;
    let (invited, secret) = invitations::invite(tx, workspace, &invitation, &editor(caller)?)?;
    // A role that the member had before may be above that of whoever invites.
    let had = before.iter().find(|other| other.id == invited.id).map(|other| other.role);
    expect_may_set(own, had.unwrap_or(invited.role))?;
    let link = links::invitations(tx, workspace)?
        .into_iter()
        .find(|link| link.place().is_some_and(|place| place.member == invited.id));
    let shown = match link {
        Some(link) => shown(tx, link)?,
        None => None,
    };
    let invitation = shown.ok_or_else(|| Error::internal("the invitation is not there"))?;
    let url = format!("{}{}", base_url.0.0, Purpose::Invitation.path(&secret));
    Ok(Created(CreatedInvitation { invitation, url }))
}

/// Withdraw an invitation
///
/// Ends the link of a member who has not accepted it. The member stays in the team.
#[operation(delete "/dashboard/invitations/{memberId}", session = "team:manage")]
pub fn withdraw_invitation(
    tx: &mut Tx,
    caller: &Caller,
    Path(member_id): Path<MemberId>,
) -> Result<Deleted<TeamInvitation>> {
    let workspace = caller.workspace_id();
    members::find(tx, workspace, member_id)?;
    links::withdraw_of_member(tx, Place { workspace, member: member_id })?;
    Ok(Deleted::of("invitation", member_id))
}

/// Change a member of the team
///
/// Changes the name, the role and the capacity. A new role is that of the member's sessions within 10 seconds. The last owner who
/// can sign in stays one. Needs a recent sign-in.
#[operation(patch "/dashboard/team/{memberId}", session = "team:manage", recent_sign_in = always)]
pub fn update_team_member(
    tx: &mut Tx,
    caller: &Caller,
    Path(member_id): Path<MemberId>,
    Body(patch): Body<TeamMemberPatch>,
) -> Result<Json<TeamMember>> {
    let own = caller.member()?;
    let before = members::find(tx, caller.workspace_id(), member_id)?;
    if let Some(role) = patch.role.filter(|role| *role != before.role) {
        expect_may_set(own, before.role)?;
        expect_may_set(own, role)?;
    }
    let patch = MemberPatch {
        name: patch.name,
        role: patch.role,
        capacity: patch.capacity,
        ..MemberPatch::default()
    };
    members::set(tx, caller.workspace_id(), member_id, patch, &editor(caller)?).map(Json)
}

/// Remove a member from the team
///
/// Ends the access of the member's account, and what apps may do that the member has authorized. Values that name the member
/// stay. The last owner who can sign in cannot be removed. Needs a recent sign-in.
#[operation(delete "/dashboard/team/{memberId}", session = "team:manage", recent_sign_in = always)]
pub fn remove_team_member(
    tx: &mut Tx,
    caller: &Caller,
    Path(member_id): Path<MemberId>,
) -> Result<Deleted<TeamMember>> {
    let before = members::find(tx, caller.workspace_id(), member_id)?;
    expect_may_set(caller.member()?, before.role)?;
    members::remove(tx, caller.workspace_id(), member_id, &editor(caller)?)?;
    Ok(Deleted::of("team_member", member_id))
}

/// Say whether you take work
///
/// Sets the availability of the member who asks.
#[operation(put "/dashboard/me/availability", session = "account")]
pub fn set_own_availability(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<OwnAvailability>,
) -> Result<Json<TeamMember>> {
    let availability = Some(Availability { status: new.status, until: new.until });
    let patch = MemberPatch { availability, ..MemberPatch::default() };
    members::set(tx, caller.workspace_id(), caller.member()?.member, patch, &editor(caller)?).map(Json)
}

/// Returns an invitation, unless its member has left the team.
fn shown(read: &mut Read, link: Link) -> Result<Option<TeamInvitation>> {
    let Some(place) = link.place() else { return Ok(None) };
    let invited = match members::find(read, place.workspace, place.member) {
        Ok(invited) => invited,
        Err(error) if error.code() == Code::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(TeamInvitation {
        id: invited.id,
        object: "invitation",
        email: link.email.unwrap_or(invited.email),
        name: invited.name,
        role: invited.role,
        expires_at: link.expires_at,
        created_at: link.created_at,
    }))
}

/// # Errors
/// `missing_scope` if the role of the member does not include giving or taking `other`.
fn expect_may_set(own: &MemberSession, other: MemberRole) -> Result<()> {
    if roles::may_set(own.role, other) {
        return Ok(());
    }
    let message =
        format!("The role `{}` does not make or change an `{}`.", own.role.as_str(), other.as_str());
    Err(Error::new(Code::MissingScope, message).param(roles::Permission::MakeOwners.as_str()))
}

fn editor(caller: &Caller) -> Result<Editor> {
    Ok(Editor { actor: Actor::of(caller)?, cause: caller.cause() })
}
