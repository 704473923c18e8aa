//! Apps that workspaces register: rows of `oauth_apps`. `svc app` changes them.

use super::client::{AppSecrets, Client, ClientSource, hash_secret};
use super::metadata::{AuthMethod, KeySource, Metadata, Strictness, clean_name, redirects};
use crate::revoke_grants_of_client;
use crate::schema::oauth_apps;
use auth::jwt::PublicKey;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use diesel::prelude::*;
use model::{AppId, Cause, Code, Error, Result, Timestamp, WorkspaceId};
use serde::Serialize;
use serde_json::Value;
use store::{Read, Tx, for_no_key_update};

/// The maximum overlap of an old secret, in seconds: a week.
pub const MOST_OVERLAP_SECONDS: i64 = 7 * 24 * 3600;
/// The maximum number of apps of a workspace that are not revoked.
const MOST_APPS: i64 = 100;

/// The data of a new app.
#[derive(Debug, Clone)]
pub struct NewApp {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The name, 1 to 80 characters.
    pub name: String,
    /// The redirect addresses.
    pub redirect_uris: Vec<String>,
    /// How it authenticates.
    pub method: AuthMethod,
    /// Its public keys as a JSON Web Key Set, or the URL of one, for [`AuthMethod::PrivateKeyJwt`].
    pub keys: Option<KeySource>,
}

/// An app as lists show it.
#[derive(Debug, Clone, Serialize)]
pub struct App {
    /// The id, which is the `client_id`.
    pub id: AppId,
    /// The name.
    pub name: String,
    /// How it authenticates.
    pub auth_method: AuthMethod,
    /// The redirect addresses.
    pub redirect_uris: Vec<String>,
    /// `active` or `revoked`.
    pub status: &'static str,
    /// When it was registered.
    pub created_at: Timestamp,
    /// Until when the secret before the last rotation is valid.
    pub old_secret_until: Option<Timestamp>,
}

/// A row of `oauth_apps`.
#[derive(Queryable, Insertable)]
#[diesel(table_name = oauth_apps)]
struct AppRow {
    id: AppId,
    workspace_id: WorkspaceId,
    name: String,
    /// A JSON array.
    redirect_uris: String,
    auth_method: String,
    secret_hash: Option<Vec<u8>>,
    old_secret_hash: Option<Vec<u8>>,
    old_secret_until: Option<Timestamp>,
    /// A JSON Web Key Set, or the URL of one.
    jwks: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    revoked_at: Option<Timestamp>,
}

impl AppRow {
    fn redirect_uris(&self) -> Result<Vec<String>> {
        serde_json::from_str(&self.redirect_uris).map_err(Error::internal)
    }

    fn method(&self) -> Result<AuthMethod> {
        AuthMethod::parse(&self.auth_method).ok_or_else(|| Error::internal("an app has an unknown method"))
    }

    fn app(&self) -> Result<App> {
        Ok(App {
            id: self.id.clone(),
            name: self.name.clone(),
            auth_method: self.method()?,
            redirect_uris: self.redirect_uris()?,
            status: if self.revoked_at.is_some() { "revoked" } else { "active" },
            created_at: self.created_at,
            old_secret_until: self.old_secret_until,
        })
    }

    fn client(self) -> Result<Client> {
        let metadata = Metadata {
            name: Some(self.name.clone()),
            redirect_uris: self.redirect_uris()?,
            method: self.method()?,
            keys: self.jwks.map(|text| match text.starts_with('{') {
                true => KeySource::Inline(text),
                false => KeySource::Url(text),
            }),
        };
        let id = self.id.to_string();
        let source = ClientSource::Registered {
            app: self.id,
            workspace: self.workspace_id,
            secrets: AppSecrets {
                current: self.secret_hash,
                previous: self.old_secret_hash.zip(self.old_secret_until),
            },
        };
        Ok(Client::new(id.clone(), id, "", source, metadata))
    }
}

/// Registers an app. Returns it with its secret, which is not stored and cannot be shown again.
///
/// # Errors
/// `validation_error` for an invalid name, redirect address or key set; `limit_reached`.
pub fn create(tx: &mut Tx, new: &NewApp) -> Result<(App, Option<String>)> {
    let name = clean_name(&new.name);
    if name.is_empty() || name != new.name.trim() {
        return Err(Error::invalid("name", "must have 1 to 80 visible characters on one line"));
    }
    let redirect_uris = redirects(new.redirect_uris.clone(), Strictness::Registration)
        .map_err(|error| Error::invalid("redirect_uris", error.rule()))?;
    if (new.method == AuthMethod::PrivateKeyJwt) != new.keys.is_some() {
        return Err(Error::invalid("jwks", "is for the method private_key_jwt, which needs it"));
    }
    if let Some(KeySource::Inline(text)) = &new.keys {
        let set: Option<Value> = serde_json::from_str(text).ok();
        if set.is_none_or(|set| PublicKey::from_jwks(&set).is_empty()) {
            return Err(Error::invalid(
                "jwks",
                "must be a JSON Web Key Set with a public key for RS256, ES256 or EdDSA",
            ));
        }
    }
    let active: i64 = oauth_apps::table
        .filter(oauth_apps::workspace_id.eq(new.workspace))
        .filter(oauth_apps::revoked_at.is_null())
        .count()
        .get_result(tx.connection())?;
    if active >= MOST_APPS {
        let message = format!("A workspace can have at most {MOST_APPS} apps. Revoke one first.");
        return Err(Error::new(Code::LimitReached, message));
    }
    let secret = new.method.has_secret().then(|| new_secret(tx));
    let row = AppRow {
        id: AppId::new(tx.now(), &*tx.random()),
        workspace_id: new.workspace,
        name,
        redirect_uris: serde_json::to_string(&redirect_uris).map_err(Error::internal)?,
        auth_method: new.method.as_str().to_owned(),
        secret_hash: secret.as_deref().map(hash_secret),
        old_secret_hash: None,
        old_secret_until: None,
        jwks: new.keys.as_ref().map(|keys| keys.text().to_owned()),
        created_at: tx.now(),
        updated_at: tx.now(),
        revoked_at: None,
    };
    let app = row.app()?;
    diesel::insert_into(oauth_apps::table).values(row).execute(tx.connection())?;
    Ok((app, secret))
}

/// Returns the apps of a workspace, also revoked ones, oldest first.
pub fn list(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<App>> {
    let rows: Vec<AppRow> = oauth_apps::table
        .filter(oauth_apps::workspace_id.eq(workspace))
        .order(oauth_apps::id.asc())
        .load(read.connection())?;
    rows.iter().map(AppRow::app).collect()
}

/// Gives an app a new secret. The old one is valid for `overlap_seconds` more.
///
/// # Errors
/// `not_found`; `invalid_state` for an app that is revoked or has no secret; `validation_error` for the overlap.
pub fn rotate(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: &AppId,
    overlap_seconds: i64,
) -> Result<(App, String)> {
    if !(0..=MOST_OVERLAP_SECONDS).contains(&overlap_seconds) {
        let rule = format_args!("must be between 0 and {MOST_OVERLAP_SECONDS}");
        return Err(Error::invalid("overlap_seconds", rule));
    }
    let row = locked(tx, workspace, id)?;
    if row.revoked_at.is_some() || row.secret_hash.is_none() {
        return Err(Error::new(Code::InvalidState, "The app is revoked or has no secret."));
    }
    let secret = new_secret(tx);
    let until = (overlap_seconds > 0).then(|| tx.now().plus_seconds(overlap_seconds));
    let now = tx.now();
    diesel::update(oauth_apps::table.find(id))
        .set((
            oauth_apps::old_secret_hash.eq(until.and(row.secret_hash)),
            oauth_apps::old_secret_until.eq(until),
            oauth_apps::secret_hash.eq(hash_secret(&secret)),
            oauth_apps::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok((locked(tx, workspace, id)?.app()?, secret))
}

/// Revokes an app and ends its grants, in all workspaces.
///
/// # Errors
/// `not_found`.
pub fn revoke(tx: &mut Tx, workspace: WorkspaceId, id: &AppId, cause: &Cause) -> Result<App> {
    let row = locked(tx, workspace, id)?;
    if row.revoked_at.is_none() {
        let now = tx.now();
        diesel::update(oauth_apps::table.find(id))
            .set((oauth_apps::revoked_at.eq(now), oauth_apps::updated_at.eq(now)))
            .execute(tx.connection())?;
    }
    revoke_grants_of_client(tx, id.as_str(), cause)?;
    locked(tx, workspace, id)?.app()
}

/// Returns the client of an app that is not revoked.
pub(super) fn client(read: &mut Read, id: &AppId) -> Result<Option<Client>> {
    let row: Option<AppRow> = oauth_apps::table
        .find(id)
        .filter(oauth_apps::revoked_at.is_null())
        .first(read.connection())
        .optional()?;
    row.map(AppRow::client).transpose()
}

fn locked(tx: &mut Tx, workspace: WorkspaceId, id: &AppId) -> Result<AppRow> {
    let query = oauth_apps::table.find(id).filter(oauth_apps::workspace_id.eq(workspace));
    let row: Option<AppRow> = for_no_key_update(query).get_result(tx.connection()).optional()?;
    row.ok_or_else(|| Error::not_found("app"))
}

fn new_secret(tx: &Tx) -> String {
    let mut bytes = [0; 32];
    tx.random().fill(&mut bytes);
    format!("svc_cs_{}", URL_SAFE_NO_PAD.encode(bytes))
}
