//! Partners, for whoever has the machine.

use super::arguments::{Json, workspace_id};
use super::output;
use crate::values::{self, whole};
use auth::{partners, workspaces};
use clap::{Args, Subcommand};
use model::{Error, PartnerId, Result};
use store::Db;

#[derive(Subcommand)]
pub(super) enum PartnerCommand {
    /// Create a partner. Its keys are made by `svc key create --partner`.
    Create {
        /// Its name, 1 to 80 characters.
        #[arg(long, value_parser = values::name)]
        name: String,
        #[command(flatten)]
        json: Json,
    },
    /// List all partners.
    List {
        #[command(flatten)]
        json: Json,
    },
}

#[derive(Args)]
pub(super) struct Attribution {
    /// Its id or slug.
    workspace: String,
    /// The partner whose keys may operate it from now on.
    #[arg(
        long,
        required_unless_present = "none",
        conflicts_with = "none",
        value_parser = whole::<i64, 1, { i64::MAX }>,
        allow_negative_numbers = true
    )]
    partner: Option<i64>,
    /// End the attribution: no partner's key operates it any more.
    #[arg(long)]
    none: bool,
    #[command(flatten)]
    json: Json,
}

pub(super) async fn partner(db: Db, command: PartnerCommand) -> Result<()> {
    match command {
        PartnerCommand::Create { name, json } => {
            let made = db.write(move |tx| partners::create(tx, &name)).await?;
            output::object(&serde_json::to_value(made).map_err(Error::internal)?, json.json)?;
        }
        PartnerCommand::List { json } => {
            let partners = db.read(partners::list).await?;
            let rows = partners
                .iter()
                .map(serde_json::to_value)
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(Error::internal)?;
            output::rows(&rows, json.json)?;
        }
    }
    Ok(())
}

pub(super) async fn attribute(db: Db, attribution: Attribution) -> Result<()> {
    let Attribution { workspace, partner, none: _, json } = attribution;
    let changed = db
        .write(move |tx| {
            let id = workspace_id(tx, &workspace)?;
            workspaces::attribute(tx, id, partner.map(PartnerId))
        })
        .await?;
    output::object(&serde_json::to_value(changed).map_err(Error::internal)?, json.json)?;
    Ok(())
}
