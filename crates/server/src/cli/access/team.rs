//! The team of a workspace, for whoever has the machine.

use super::operator;
use crate::cli::arguments::{Json, workspace_id};
use crate::cli::output;
use crate::values::{self, whole};
use accounts::links::Purpose;
use business::team::{
    self, Availability, AvailabilityStatus, Editor, Invitation, MemberPatch, MemberRole, NewMember,
};
use clap::{Args, Subcommand};
use model::{Error, MemberId, Patch, Result, Timestamp};
use store::Db;

#[derive(Subcommand)]
pub(crate) enum TeamCommand {
    /// Add a member.
    Add {
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        /// The name, 1 to 120 characters.
        #[arg(long)]
        name: String,
        /// The email address, unique in the workspace.
        #[arg(long)]
        email: String,
        #[command(flatten)]
        settings: MemberSettings,
        #[command(flatten)]
        json: Json,
    },
    /// List all members.
    List {
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        #[command(flatten)]
        json: Json,
    },
    /// Change a member. What is not given stays unchanged.
    Set {
        /// The id of the member.
        #[arg(value_parser = whole::<i64, 1, { i64::MAX }>, allow_negative_numbers = true)]
        member: i64,
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        /// The name, 1 to 120 characters.
        #[arg(long)]
        name: Option<String>,
        /// The email address, unique in the workspace.
        #[arg(long)]
        email: Option<String>,
        /// Remove the capacity.
        #[arg(long, conflicts_with = "capacity")]
        no_capacity: bool,
        #[command(flatten)]
        settings: MemberSettings,
        #[command(flatten)]
        json: Json,
    },
    /// Print a link with which a member sets a password and signs in. It works once, within 7 days. Adds the member if the
    /// team has none with the email address. An earlier invitation of the member ends.
    Invite {
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        /// The email address.
        #[arg(long)]
        email: String,
        /// The name of a new member; the email address if not given.
        #[arg(long)]
        name: Option<String>,
        /// `owner`, `admin`, `manager`, `agent` or `viewer`. A new member is an `agent` if not given; that of another stays.
        #[arg(long, value_parser = values::member_role)]
        role: Option<MemberRole>,
        #[command(flatten)]
        json: Json,
    },
    /// Remove a member.
    Remove {
        /// The id of the member.
        #[arg(value_parser = whole::<i64, 1, { i64::MAX }>, allow_negative_numbers = true)]
        member: i64,
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        #[command(flatten)]
        json: Json,
    },
}

/// What a member has beside a name and an email address.
#[derive(Args)]
pub(crate) struct MemberSettings {
    /// `owner`, `admin`, `manager`, `agent` or `viewer`; a new member is an `agent` if not given.
    #[arg(long, value_parser = values::member_role)]
    role: Option<MemberRole>,
    /// The address of a picture. An empty one removes it.
    #[arg(long, value_name = "URL")]
    avatar_url: Option<String>,
    /// `online`, `away` or `offline`; a new member is `online` if not given.
    #[arg(long, value_parser = values::availability)]
    availability: Option<AvailabilityStatus>,
    /// When the member is online again, in RFC 3339.
    #[arg(long, requires = "availability", value_parser = values::time)]
    until: Option<Timestamp>,
    /// The most conversations at a time; any number if not given.
    #[arg(long, value_parser = whole::<i64, 1, { team::MOST_CAPACITY }>, allow_negative_numbers = true)]
    capacity: Option<i64>,
    /// The languages, such as `es,pt-BR`.
    #[arg(long, value_delimiter = ',')]
    languages: Option<Vec<String>>,
}

impl MemberSettings {
    fn availability(&self) -> Option<Availability> {
        self.availability.map(|status| Availability { status, until: self.until })
    }

    fn member(self, name: String, email: String) -> NewMember {
        NewMember {
            name,
            email,
            role: self.role.unwrap_or_default(),
            availability: self.availability().unwrap_or_default(),
            avatar_url: self.avatar_url.filter(|url| !url.is_empty()),
            capacity: self.capacity,
            languages: self.languages.unwrap_or_default(),
        }
    }

    /// The change of a member. An empty address of a picture removes it.
    fn patch(self, name: Option<String>, email: Option<String>, no_capacity: bool) -> MemberPatch {
        let availability = self.availability();
        MemberPatch {
            name,
            email,
            role: self.role,
            availability,
            avatar_url: match self.avatar_url {
                Some(url) if url.is_empty() => Patch::Clear,
                url => url.map_or(Patch::Keep, Patch::Set),
            },
            capacity: match self.capacity {
                Some(capacity) => Patch::Set(capacity),
                None if no_capacity => Patch::Clear,
                None => Patch::Keep,
            },
            languages: self.languages,
        }
    }
}

pub(crate) async fn team(db: Db, command: TeamCommand, base_url: String) -> Result<()> {
    match command {
        TeamCommand::Add { workspace, name, email, settings, json } => {
            let new = settings.member(name, email);
            let made = db
                .write(move |tx| {
                    let id = workspace_id(tx, &workspace)?;
                    team::add(tx, id, new.clone())
                })
                .await?;
            output::object(&serde_json::to_value(made).map_err(Error::internal)?, json.json)?;
        }
        TeamCommand::List { workspace, json } => {
            let members = db
                .read(move |read| {
                    let id = workspace_id(read, &workspace)?;
                    team::list(read, id)
                })
                .await?;
            let rows = members
                .iter()
                .map(serde_json::to_value)
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(Error::internal)?;
            output::rows(&rows, json.json)?;
        }
        TeamCommand::Set { member, workspace, name, email, no_capacity, settings, json } => {
            let patch = settings.patch(name, email, no_capacity);
            let changed = db
                .write(move |tx| {
                    let id = workspace_id(tx, &workspace)?;
                    team::set(tx, id, MemberId(member), patch.clone(), &Editor::command_line("svc team set"))
                })
                .await?;
            output::object(&serde_json::to_value(changed).map_err(Error::internal)?, json.json)?;
        }
        TeamCommand::Invite { workspace, email, name, role, json } => {
            let invitation = Invitation { email, name, role };
            let invited = db.write(move |tx| {
                let id = workspace_id(tx, &workspace)?;
                team::invite(tx, id, &invitation, &Editor::command_line("svc team invite"))
            });
            let (member, secret) = invited.await?;
            let mut shown = operator::shown(&base_url, Purpose::Invitation, &secret);
            shown.insert("member".to_owned(), serde_json::json!(member.id));
            shown.insert("role".to_owned(), serde_json::json!(member.role));
            output::object(&shown.into(), json.json)?;
        }
        TeamCommand::Remove { member, workspace, json } => {
            db.write(move |tx| {
                let id = workspace_id(tx, &workspace)?;
                team::remove(tx, id, MemberId(member), &Editor::command_line("svc team remove"))
            })
            .await?;
            output::object(&serde_json::json!({ "id": member, "removed": true }), json.json)?;
        }
    }
    Ok(())
}
