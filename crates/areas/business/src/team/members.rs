//! The members of a team: reading, adding, changing and removing them.

use super::model::{Availability, AvailabilityStatus, MemberPatch, MemberRow, NewMember, TeamMember};
use crate::schema::team_members;
use accounts::links::Place;
use accounts::{Actor, memberships};
use diesel::prelude::*;
use fields::invisible::trimmed;
use fields::text::name_key;
use fields::value::{email, is_url};
use model::{Cause, Code, Error, FieldError, JsonText, MemberId, MemberRole, Result, Timestamp, WorkspaceId};
use ports::{Member, Members};
use store::{OneRow, Read, Tx};

/// The maximum number of members in a team.
const MOST_MEMBERS: i64 = 500;
/// The maximum number of languages of a member.
const MOST_LANGUAGES: usize = 20;
/// The maximum capacity of a member.
pub const MOST_CAPACITY: i64 = 10_000;

/// The implementation of the port [`Members`].
#[derive(Debug, Clone, Copy)]
pub struct TeamDirectory;

impl Members for TeamDirectory {
    fn among(&self, read: &mut Read, workspace: WorkspaceId, ids: &[MemberId]) -> Result<Vec<Member>> {
        let rows: Vec<(MemberId, String, String)> = team_members::table
            .filter(team_members::workspace_id.eq(workspace))
            .filter(team_members::id.eq_any(ids))
            .select((team_members::id, team_members::name, team_members::email))
            .load(read.connection())?;
        Ok(rows.into_iter().map(|(id, name, email)| Member { id, name, email }).collect())
    }
}

/// Lists the members of a team in the order in which they joined, without the counts of open work.
pub fn list(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<TeamMember>> {
    let rows: Vec<MemberRow> = team_members::table
        .filter(team_members::workspace_id.eq(workspace))
        .order(team_members::id)
        .select(MemberRow::as_select())
        .load(read.connection())?;
    let now = read.now();
    rows.into_iter().map(|row| row.member(now)).collect()
}

/// Returns a member of a team, without the counts of open work.
///
/// # Errors
/// `not_found`.
pub fn find(read: &mut Read, workspace: WorkspaceId, id: MemberId) -> Result<TeamMember> {
    let row: MemberRow = team_members::table
        .filter(team_members::workspace_id.eq(workspace))
        .filter(team_members::id.eq(id))
        .select(MemberRow::as_select())
        .get_result(read.connection())
        .or_not_found("member")?;
    row.member(read.now())
}

/// A member who can be assigned conversations.
#[derive(Debug, Clone, Copy, Queryable)]
pub struct AvailableMember {
    /// The id.
    pub id: MemberId,
    /// The maximum number of conversations at a time.
    pub capacity: Option<i64>,
    /// When automatic assignment last chose the member.
    pub last_assigned_at: Option<Timestamp>,
}

/// Returns the members of a team who accept conversations now.
pub fn available(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<AvailableMember>> {
    let is_back = team_members::available_at.is_not_null().and(team_members::available_at.le(read.now()));
    Ok(team_members::table
        .filter(team_members::workspace_id.eq(workspace))
        .filter(team_members::role.ne(MemberRole::Viewer))
        .filter(team_members::availability.eq(AvailabilityStatus::Online).or(is_back.assume_not_null()))
        .select((team_members::id, team_members::capacity, team_members::last_assigned_at))
        .load(read.connection())?)
}

/// Returns the members among `ids` who are absent, with the minutes of their absence. Members who have left the team
/// count as absent.
pub fn absences(read: &mut Read, workspace: WorkspaceId, ids: &[MemberId]) -> Result<Vec<(MemberId, i64)>> {
    let now = read.now();
    let rows: Vec<(MemberId, AvailabilityStatus, Option<Timestamp>, Option<Timestamp>)> = team_members::table
        .filter(team_members::workspace_id.eq(workspace))
        .filter(team_members::id.eq_any(ids))
        .select((
            team_members::id,
            team_members::availability,
            team_members::available_at,
            team_members::absent_since,
        ))
        .load(read.connection())?;
    let minutes = |id: MemberId| {
        let Some((_, status, until, since)) = rows.iter().find(|row| row.0 == id) else {
            return Some(i64::MAX);
        };
        let is_absent = Availability { status: *status, until: *until }.is_absent(now);
        since.filter(|_| is_absent).map(|since| (now.millis() - since.millis()) / 60_000)
    };
    Ok(ids.iter().filter_map(|id| Some((*id, minutes(*id)?))).collect())
}

/// Records that automatic assignment chose a member.
pub fn record_assignment(tx: &mut Tx, member: MemberId) -> Result<()> {
    let now = tx.now();
    diesel::update(team_members::table.find(member))
        .set(team_members::last_assigned_at.eq(now))
        .execute(tx.connection())?;
    Ok(())
}

/// Adds a member to a team.
///
/// # Errors
/// `validation_error`; `duplicate_value` if another member has the email address; `limit_reached`.
pub fn add(tx: &mut Tx, workspace: WorkspaceId, new: NewMember) -> Result<TeamMember> {
    let content = Content::of(new)?;
    lock(tx, workspace)?;
    let count: i64 = team_members::table
        .filter(team_members::workspace_id.eq(workspace))
        .count()
        .get_result(tx.connection())?;
    if count >= MOST_MEMBERS {
        return Err(Error::new(Code::LimitReached, format!("A team has at most {MOST_MEMBERS} members.")));
    }
    refuse_taken(tx, workspace, &content, None)?;
    let now = tx.now();
    let absent_since = content.is_absent(now).then_some(now);
    let id: MemberId = diesel::insert_into(team_members::table)
        .values((
            team_members::workspace_id.eq(workspace),
            content,
            team_members::absent_since.eq(absent_since),
            team_members::joined_at.eq(now),
            team_members::updated_at.eq(now),
        ))
        .returning(team_members::id)
        .get_result(tx.connection())?;
    find(tx, workspace, id)
}

/// Who changes a team: for the audit log, and for the events of apps whose authorization ends.
#[derive(Debug, Clone)]
pub struct Editor {
    /// For the audit log.
    pub actor: Actor,
    /// For events.
    pub cause: Cause,
}

impl Editor {
    /// Returns an operator at the command line.
    pub fn command_line(command: &'static str) -> Self {
        Self { actor: Actor::CommandLine, cause: Cause::system(command) }
    }
}

/// Changes a member of a team. A new role is that of the member's sessions too, and one with fewer rights ends what apps
/// may do that the member has authorized.
///
/// # Errors
/// `not_found`; `invalid_state` if no owner could sign in any more; the errors of [`add`].
pub fn set(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: MemberId,
    patch: MemberPatch,
    by: &Editor,
) -> Result<TeamMember> {
    lock(tx, workspace)?;
    let before = find(tx, workspace, id)?;
    let was_absent = before.availability.status != AvailabilityStatus::Online;
    let mut next = NewMember {
        name: patch.name.unwrap_or(before.name),
        email: patch.email.unwrap_or(before.email),
        role: patch.role.unwrap_or(before.role),
        avatar_url: before.avatar_url,
        availability: patch.availability.unwrap_or(before.availability),
        capacity: before.capacity,
        languages: patch.languages.unwrap_or(before.languages),
    };
    let role = next.role;
    patch.avatar_url.apply(&mut next.avatar_url);
    patch.capacity.apply(&mut next.capacity);
    let content = Content::of(next)?;
    refuse_taken(tx, workspace, &content, Some(id))?;
    let ended = memberships::set_role(tx, Place { workspace, member: id }, role, &by.actor)?;
    oauth::record_ended_grants(tx, &ended, &by.cause)?;
    let now = tx.now();
    let is_absent = content.is_absent(now);
    let since = (is_absent != was_absent).then(|| team_members::absent_since.eq(is_absent.then_some(now)));
    diesel::update(team_members::table.find(id))
        .set((content, since, team_members::updated_at.eq(now)))
        .execute(tx.connection())?;
    find(tx, workspace, id)
}

/// Removes a member from a team. Values of items that name the member stay as they are. The access of the member's
/// account ends, and what apps may do that the member has authorized.
///
/// # Errors
/// `not_found`; `invalid_state` if no owner could sign in any more.
pub fn remove(tx: &mut Tx, workspace: WorkspaceId, id: MemberId, by: &Editor) -> Result<()> {
    lock(tx, workspace)?;
    let ended = memberships::leave(tx, Place { workspace, member: id }, &by.actor)?;
    oauth::record_ended_grants(tx, &ended, &by.cause)?;
    let removed = diesel::delete(
        team_members::table.filter(team_members::workspace_id.eq(workspace)).filter(team_members::id.eq(id)),
    )
    .execute(tx.connection())?;
    if removed == 0 { Err(Error::not_found("member")) } else { Ok(()) }
}

/// The checked values of a member.
#[derive(Insertable, AsChangeset)]
#[diesel(table_name = team_members, treat_none_as_null = true)]
struct Content {
    name: String,
    email: String,
    email_key: String,
    role: MemberRole,
    avatar_url: Option<String>,
    availability: AvailabilityStatus,
    available_at: Option<Timestamp>,
    capacity: Option<i64>,
    languages: JsonText,
}

impl Content {
    fn is_absent(&self, now: Timestamp) -> bool {
        Availability { status: self.availability, until: self.available_at }.is_absent(now)
    }

    /// # Errors
    /// `validation_error` with all problems.
    fn of(new: NewMember) -> Result<Self> {
        let name = trimmed(&new.name).to_owned();
        let email = email(&new.email).unwrap_or_default();
        let Availability { status, until } = new.availability;
        let mut wrong = Vec::new();
        let mut expect = |holds: bool, param: &str, rule: &str| {
            if !holds {
                wrong.push(FieldError::new(param, rule));
            }
        };
        let is_text = |text: &str, most: usize| {
            (1..=most).contains(&text.chars().count()) && !text.chars().any(char::is_control)
        };
        expect(is_text(&name, 120), "name", "must have 1 to 120 characters");
        expect(is_text(&email, 254), "email", "must be an email address");
        if let Some(url) = &new.avatar_url {
            expect(is_text(url, 2048) && is_url(url), "avatar_url", "must be an http or https address");
        }
        let is_online = status == AvailabilityStatus::Online;
        expect(!is_online || until.is_none(), "until", "is only for members who are away or offline");
        if let Some(capacity) = new.capacity {
            let rule = format!("must be from 1 to {MOST_CAPACITY}");
            expect((1..=MOST_CAPACITY).contains(&capacity), "capacity", &rule);
        }
        let rule = format!("must have at most {MOST_LANGUAGES} languages");
        expect(new.languages.len() <= MOST_LANGUAGES, "languages", &rule);
        for (place, language) in new.languages.iter().enumerate() {
            let param = format!("languages[{place}]");
            expect(crate::locale::is_locale(language), &param, "must be a language such as es or pt-BR");
        }
        match Error::all_invalid(wrong) {
            Some(error) => Err(error),
            None => Ok(Self {
                name,
                email_key: name_key(&email),
                email,
                role: new.role,
                avatar_url: new.avatar_url,
                availability: status,
                available_at: until,
                capacity: new.capacity,
                languages: JsonText::of(&new.languages),
            }),
        }
    }
}

/// Locks the membership of a team until the transaction ends.
fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    tx.lock(&format!("team {workspace}"))
}

fn refuse_taken(
    tx: &mut Tx,
    workspace: WorkspaceId,
    content: &Content,
    except: Option<MemberId>,
) -> Result<()> {
    let holder: Option<MemberId> = team_members::table
        .filter(team_members::workspace_id.eq(workspace))
        .filter(team_members::email_key.eq(&content.email_key))
        .select(team_members::id)
        .first(tx.connection())
        .optional()?;
    match holder.filter(|holder| Some(*holder) != except) {
        None => Ok(()),
        Some(holder) => Err(Error::duplicate("email", "Another member has this email address.", holder)),
    }
}
