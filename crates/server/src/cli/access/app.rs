//! OAuth apps that a workspace registers, and what members have allowed apps, for whoever has the machine.

use crate::cli::arguments::{Json, workspace_id};
use crate::cli::output;
use crate::values::{self, whole};
use clap::{Args, Subcommand};
use model::{AppId, Cause, Error, KeyId, Result};
use oauth::clients::apps::{self, MOST_OVERLAP_SECONDS, NewApp};
use oauth::clients::{AuthMethod, KeySource};
use oauth::{grants_of_workspace, revoke_grant};
use serde_json::{Value, json};
use std::path::PathBuf;
use store::Db;

#[derive(Subcommand)]
pub(crate) enum AppCommand {
    /// Register an app. Its id is its `client_id`; its secret is shown once.
    Create(Create),
    /// List the apps that a workspace has registered.
    List {
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        #[command(flatten)]
        json: Json,
    },
    /// Give an app a new secret. The old one stays valid for a while.
    Rotate {
        /// The id of the app.
        app: AppArgument,
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        /// How long the old secret stays valid, in seconds.
        #[arg(
            long,
            value_name = "SECONDS",
            default_value = "86400",
            value_parser = whole::<i64, 0, MOST_OVERLAP_SECONDS>,
            allow_negative_numbers = true
        )]
        overlap: i64,
        #[command(flatten)]
        json: Json,
    },
    /// Revoke an app. Everything that members have allowed it ends, in all workspaces.
    Revoke {
        /// The id of the app.
        app: AppArgument,
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        #[command(flatten)]
        json: Json,
    },
}

#[derive(Args)]
pub(crate) struct Create {
    /// The workspace's id or slug.
    #[arg(long)]
    workspace: String,
    /// The name that people see, 1 to 80 characters.
    #[arg(long, value_parser = values::name)]
    name: String,
    /// Where the browser may return: https, http on loopback with any port, or an app by its own scheme. Several are separated by commas.
    #[arg(long, value_name = "URLS", value_delimiter = ',', required = true)]
    redirect: Vec<String>,
    /// How the app authenticates: `client_secret_basic`, `client_secret_post`, `none` for apps that cannot keep a secret, or
    /// `private_key_jwt`.
    #[arg(long, default_value = "client_secret_basic", value_parser = values::auth_method)]
    auth: AuthMethod,
    /// A file with the JSON Web Key Set of the app, for `private_key_jwt`.
    #[arg(long, value_name = "FILE", conflicts_with = "jwks_uri")]
    jwks: Option<PathBuf>,
    /// The URL of the JSON Web Key Set of the app, for `private_key_jwt`.
    #[arg(long, value_name = "URL")]
    jwks_uri: Option<String>,
    #[command(flatten)]
    json: Json,
}

/// The id of an app, such as `app_01m7w4n5e0k3p8r2v6x9b1d4f7`.
#[derive(Clone)]
pub(crate) struct AppArgument(AppId);

impl std::str::FromStr for AppArgument {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        AppId::parse(text).map(Self).ok_or("must be the id of an app, which begins with app_")
    }
}

#[derive(Subcommand)]
pub(crate) enum GrantCommand {
    /// List what members of a workspace have allowed apps.
    List {
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        #[command(flatten)]
        json: Json,
    },
    /// End what an app may do. Its tokens stop working within ten seconds.
    Revoke {
        /// The id of the grant, which begins with `key_`.
        grant: GrantArgument,
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        #[command(flatten)]
        json: Json,
    },
}

/// The id of a grant, which is that of its key.
#[derive(Clone)]
pub(crate) struct GrantArgument(KeyId);

impl std::str::FromStr for GrantArgument {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        KeyId::parse(text).map(Self).ok_or("must be the id of a grant, which begins with key_")
    }
}

pub(crate) async fn app(db: Db, command: AppCommand) -> Result<()> {
    match command {
        AppCommand::Create(arguments) => create(db, arguments).await?,
        AppCommand::List { workspace, json } => {
            let apps = db.read(move |read| {
                let id = workspace_id(read, &workspace)?;
                apps::list(read, id)
            });
            let rows = apps.await?.iter().map(value).collect::<Result<Vec<_>>>()?;
            output::rows(&rows, json.json)?;
        }
        AppCommand::Rotate { app, workspace, overlap, json } => {
            let (app, secret) = db
                .write(move |tx| {
                    let id = workspace_id(tx, &workspace)?;
                    apps::rotate(tx, id, &app.0, overlap)
                })
                .await?;
            output::object(&with_secret(value(&app)?, Some(secret)), json.json)?;
        }
        AppCommand::Revoke { app, workspace, json } => {
            let app = db
                .write(move |tx| {
                    let id = workspace_id(tx, &workspace)?;
                    apps::revoke(tx, id, &app.0, &Cause::system("svc app revoke"))
                })
                .await?;
            output::object(&value(&app)?, json.json)?;
        }
    }
    Ok(())
}

async fn create(db: Db, arguments: Create) -> Result<()> {
    let Create { workspace, name, redirect, auth, jwks, jwks_uri, json } = arguments;
    let keys = match (jwks, jwks_uri) {
        (Some(file), _) => {
            let text = std::fs::read_to_string(&file)
                .map_err(|error| Error::invalid("jwks", format_args!("cannot be read: {error}")))?;
            Some(KeySource::Inline(text))
        }
        (None, url) => url.map(KeySource::Url),
    };
    let (app, secret) = db
        .write(move |tx| {
            let workspace = workspace_id(tx, &workspace)?;
            let new = NewApp {
                workspace,
                name: name.clone(),
                redirect_uris: redirect.clone(),
                method: auth,
                keys: keys.clone(),
            };
            apps::create(tx, &new)
        })
        .await?;
    output::object(&with_secret(value(&app)?, secret), json.json)?;
    Ok(())
}

fn with_secret(mut app: Value, secret: Option<String>) -> Value {
    if let (Some(secret), Some(fields)) = (secret, app.as_object_mut()) {
        fields.insert("secret".to_owned(), secret.into());
    }
    app
}

fn value(object: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(object).map_err(Error::internal)
}

pub(crate) async fn grant(db: Db, command: GrantCommand) -> Result<()> {
    match command {
        GrantCommand::List { workspace, json } => {
            let grants = db.read(move |read| {
                let id = workspace_id(read, &workspace)?;
                grants_of_workspace(read, id)
            });
            let rows = grants.await?.iter().map(value).collect::<Result<Vec<_>>>()?;
            output::rows(&rows, json.json)?;
        }
        GrantCommand::Revoke { grant, workspace, json } => {
            let id = grant.0.clone();
            db.write(move |tx| {
                let workspace = workspace_id(tx, &workspace)?;
                revoke_grant(tx, workspace, &grant.0, &Cause::system("svc grant revoke"))
            })
            .await?;
            output::object(&json!({ "id": id, "revoked": true }), json.json)?;
        }
    }
    Ok(())
}
