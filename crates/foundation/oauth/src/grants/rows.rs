//! The rows of grants, codes, families and tokens.

use crate::Resource;
use crate::schema::{
    oauth_access_tokens, oauth_codes, oauth_families, oauth_grants, oauth_used_refresh_tokens,
};
use diesel::prelude::*;
use model::{AccountId, Env, FamilyId, KeyId, MemberId, Timestamp, WorkspaceId};

#[derive(Debug, Clone, Queryable, Insertable)]
#[diesel(table_name = oauth_grants)]
pub(crate) struct GrantRow {
    pub(crate) key_id: KeyId,
    pub(crate) account_id: AccountId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) member_id: MemberId,
    pub(crate) env: Env,
    pub(crate) client_id: String,
    pub(crate) client_key: String,
    pub(crate) client_name: String,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

#[derive(Queryable, Insertable)]
#[diesel(table_name = oauth_codes)]
pub(crate) struct CodeRow {
    pub(crate) code_hash: Vec<u8>,
    pub(crate) key_id: KeyId,
    pub(crate) client_id: String,
    pub(crate) redirect_uri: String,
    pub(crate) challenge: String,
    pub(crate) resource: Resource,
    pub(crate) scopes: String,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) used_at: Option<Timestamp>,
    /// The family that the code began.
    pub(crate) family_id: Option<FamilyId>,
}

#[derive(Queryable, Insertable)]
#[diesel(table_name = oauth_families)]
pub(crate) struct FamilyRow {
    pub(crate) id: FamilyId,
    pub(crate) key_id: KeyId,
    pub(crate) client_id: String,
    pub(crate) resource: Resource,
    /// The digest of the active refresh token.
    pub(crate) refresh_hash: Vec<u8>,
    /// The number of refreshes.
    pub(crate) generation: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) refreshed_at: Timestamp,
    pub(crate) idle_end_at: Timestamp,
    pub(crate) ends_at: Timestamp,
    pub(crate) revoked_at: Option<Timestamp>,
}

#[derive(Queryable, Insertable)]
#[diesel(table_name = oauth_used_refresh_tokens)]
pub(crate) struct UsedRow {
    pub(crate) refresh_hash: Vec<u8>,
    pub(crate) family_id: FamilyId,
    pub(crate) used_at: Timestamp,
    /// The sealed answer.
    pub(crate) answer: Option<String>,
}

#[derive(Queryable, Insertable)]
#[diesel(table_name = oauth_access_tokens)]
pub(crate) struct AccessRow {
    pub(crate) token_hash: Vec<u8>,
    pub(crate) family_id: FamilyId,
    pub(crate) key_id: KeyId,
    pub(crate) resource: Resource,
    pub(crate) scopes: String,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) revoked_at: Option<Timestamp>,
}
