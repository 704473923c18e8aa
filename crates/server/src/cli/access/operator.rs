//! `svc operator`: the people who manage the installation.

use crate::Config;
use crate::cli::admin;
use crate::cli::arguments::Json;
use crate::cli::output;
use accounts::links::{self, NewLink, Purpose};
use accounts::{Account, Actor, Email, Secret, account};
use clap::Subcommand;
use model::{Error, Result};
use serde_json::{Map, Value, json};
use store::{Db, Read};

#[derive(Subcommand)]
pub(crate) enum OperatorCommand {
    /// Print a link with which a person creates the account of an operator. It works once, within 30 minutes.
    Link {
        #[command(flatten)]
        json: Json,
    },
    /// List all operators.
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Print a link with which the person of an account sets a new password. It works once, within 30 minutes.
    ResetPassword {
        /// The e-mail address of the account.
        email: String,
        #[command(flatten)]
        json: Json,
    },
    /// Make an operator an ordinary account. Its sessions end; it stays a member of its workspaces.
    Remove {
        /// The e-mail address of the account.
        email: String,
        #[command(flatten)]
        json: Json,
    },
}

pub(crate) fn run(config: &Config, command: OperatorCommand) -> anyhow::Result<()> {
    let base_url = config.base_url();
    admin::run(config, |db| operator(db, command, base_url))
}

async fn operator(db: Db, command: OperatorCommand, base_url: String) -> Result<()> {
    match command {
        OperatorCommand::Link { json } => {
            let new = NewLink::FirstOperator(None);
            let secret = db.write(move |tx| links::issue(tx, &new, &Actor::CommandLine)).await?;
            output::object(&shown(&base_url, Purpose::FirstOperator, &secret).into(), json.json)?;
        }
        OperatorCommand::List { json } => {
            let operators = db.read(account::operators).await?;
            let rows: Vec<Value> = operators.iter().map(row).collect();
            output::rows(&rows, json.json)?;
        }
        OperatorCommand::ResetPassword { email, json } => {
            let secret = db.write(move |tx| {
                let account = by_email(tx, &email)?;
                links::issue(tx, &NewLink::PasswordReset(account.id), &Actor::CommandLine)
            });
            output::object(&shown(&base_url, Purpose::PasswordReset, &secret.await?).into(), json.json)?;
        }
        OperatorCommand::Remove { email, json } => {
            let removed = db.write(move |tx| {
                let account = by_email(tx, &email)?;
                if !account.operator {
                    return Err(Error::invalid("email", "is not that of an operator"));
                }
                account::set_operator(tx, &account.id, false, &Actor::CommandLine)
            });
            let removed = removed.await?;
            output::object(&json!({ "id": removed.id, "email": removed.email, "removed": true }), json.json)?;
        }
    }
    Ok(())
}

fn by_email(read: &mut Read, email: &str) -> Result<Account> {
    let found = account::by_email(read, &Email::parse(email)?)?;
    found.ok_or_else(|| Error::invalid("email", "is not that of an account"))
}

fn row(account: &Account) -> Value {
    json!({ "id": account.id, "email": account.email, "name": account.name, "created_at": account.created_at })
}

/// What is printed of a new link.
pub(crate) fn shown(base_url: &str, purpose: Purpose, secret: &Secret) -> Map<String, Value> {
    let url = format!("{base_url}{}", purpose.path(secret));
    let minutes = purpose.lifetime_seconds() / 60;
    Map::from_iter([("url".to_owned(), url.into()), ("works_for_minutes".to_owned(), minutes.into())])
}
