//! Partners, who resell the service. Operators create them at the command line.

use crate::schema::{partners, workspaces};
use diesel::prelude::*;
use model::{Error, PartnerId, Result, Timestamp};
use store::{Read, Tx, each};

/// A partner as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PartnerRecord {
    /// The partner.
    pub id: PartnerId,
    /// The name for people.
    pub name: String,
    /// The number of workspaces attributed to it.
    pub workspaces: i64,
    /// When the object was created.
    pub created_at: Timestamp,
}

/// Creates a partner.
///
/// # Errors
/// `validation_error` for a name that is blank or longer than 80 characters.
pub fn create(tx: &mut Tx, name: &str) -> Result<PartnerRecord> {
    let name = checked_name(name)?;
    let now = tx.now();
    let id = each!(tx.connection(), |connection| {
        diesel::insert_into(partners::table)
            .values((partners::name.eq(name), partners::created_at.eq(now)))
            .returning(partners::id)
            .get_result(connection)
    })?;
    Ok(PartnerRecord { id, name: name.to_owned(), workspaces: 0, created_at: now })
}

/// Returns all partners, oldest first.
pub fn list(read: &mut Read) -> Result<Vec<PartnerRecord>> {
    let clients: Vec<(PartnerId, i64)> = workspaces::table
        .filter(workspaces::partner_id.is_not_null())
        .group_by(workspaces::partner_id)
        .select((workspaces::partner_id.assume_not_null(), diesel::dsl::count_star()))
        .load(read.connection())?;
    let rows: Vec<(PartnerId, String, Timestamp)> = partners::table
        .order(partners::id.asc())
        .select((partners::id, partners::name, partners::created_at))
        .load(read.connection())?;
    let of =
        |id: PartnerId| clients.iter().find(|(partner, _)| *partner == id).map_or(0, |(_, count)| *count);
    Ok(rows
        .into_iter()
        .map(|(id, name, created_at)| PartnerRecord { id, name, workspaces: of(id), created_at })
        .collect())
}

/// Returns an error if a partner does not exist.
///
/// # Errors
/// `validation_error`.
pub fn expect(read: &mut Read, partner: PartnerId) -> Result<()> {
    let known: Option<PartnerId> =
        partners::table.find(partner).select(partners::id).first(read.connection()).optional()?;
    known.map(drop).ok_or_else(|| Error::invalid("partner", "is not the id of a partner"))
}

/// Trims and checks the name of a partner or a workspace.
///
/// # Errors
/// `validation_error`.
pub(crate) fn checked_name(name: &str) -> Result<&str> {
    let name = name.trim();
    if (1..=80).contains(&name.chars().count()) && !name.contains('\0') {
        Ok(name)
    } else {
        Err(Error::invalid("name", "must have 1 to 80 characters"))
    }
}
