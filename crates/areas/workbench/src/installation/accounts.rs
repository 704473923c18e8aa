//! The accounts of the installation.

use accounts::account;
use model::{AccountId, Result, Timestamp};
use operation::{OptIn, OptInList, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// An account of the installation.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "email": "marta@example.com", "name": "Marta Ruiz", "is_operator": true }))]
pub struct InstallationAccount {
    /// The id of the account.
    pub id: AccountId,
    /// Always `account`.
    pub object: &'static str,
    /// The e-mail address.
    pub email: String,
    /// The name.
    pub name: String,
    /// Whether the account manages the installation.
    pub is_operator: bool,
    /// When the account was disabled.
    pub disabled_at: Option<Timestamp>,
    /// When the object was created.
    pub created_at: Timestamp,
}

/// The accounts of the installation
///
/// Lists all accounts, oldest first, also disabled ones.
#[operation(get "/dashboard/accounts", session = "installation:manage")]
pub fn list_accounts(read: &mut Read, page: OptIn) -> Result<OptInList<InstallationAccount>> {
    let after = page.page().after::<AccountId>()?;
    let found = account::page(read, after.as_ref(), page.page().fetch())?;
    let shown = |account: accounts::Account| InstallationAccount {
        id: account.id,
        object: "account",
        email: account.email,
        name: account.name,
        is_operator: account.operator,
        disabled_at: account.disabled_at,
        created_at: account.created_at,
    };
    let rows = found.into_iter().map(shown).collect();
    Ok(page.answer(rows, |account: &InstallationAccount| account.id.to_string()))
}
