//! The profile of a workspace's business, for whoever has the machine.

use super::arguments::{Json, workspace_id};
use super::output;
use business::BusinessPatch;
use clap::Subcommand;
use model::{Error, Result};
use store::Db;

#[derive(Subcommand)]
pub(super) enum BusinessCommand {
    /// Print the profile.
    Show {
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        #[command(flatten)]
        json: Json,
    },
    /// Change the profile.
    Set {
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        /// The fields to change, as a JSON object such as `{"time_zone": "Europe/Madrid"}`. Others stay unchanged, and
        /// `null` removes one.
        fields: String,
        #[command(flatten)]
        json: Json,
    },
}

pub(super) async fn business(db: Db, command: BusinessCommand) -> Result<()> {
    let (profile, json) = match command {
        BusinessCommand::Show { workspace, json } => {
            let profile = db
                .read(move |read| {
                    let id = workspace_id(read, &workspace)?;
                    business::show(read, id)
                })
                .await?;
            (profile, json)
        }
        BusinessCommand::Set { workspace, fields, json } => {
            let value = input::parse_json(fields.as_bytes(), "body")?;
            let patch: BusinessPatch = input::read_json(value, "", "body")?;
            let profile = db
                .write(move |tx| {
                    let id = workspace_id(tx, &workspace)?;
                    business::set(tx, id, patch.clone())
                })
                .await?;
            (profile, json)
        }
    };
    output::object(&serde_json::to_value(profile).map_err(Error::internal)?, json.json)?;
    Ok(())
}
