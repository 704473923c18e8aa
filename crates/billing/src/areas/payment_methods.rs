//! `GET /billing/payment-methods`.

use crate::schema::payment_methods;
use diesel::prelude::*;
use model::{Caller, PaymentMethodId, Result, Timestamp};
use operation::{Rows, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// A saved payment method. The payment processor keeps the rest.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PaymentMethod {
    /// Always `payment_method`.
    object: &'static str,
    /// Its id.
    id: PaymentMethodId,
    /// What it is, such as `card`.
    kind: String,
    /// Whose it is, such as `visa`, or `null`.
    brand: Option<String>,
    /// Its last four digits, or `null`.
    last4: Option<String>,
    /// The month in which it ends, or `null`.
    exp_month: Option<i64>,
    /// The year in which it ends, or `null`.
    exp_year: Option<i64>,
    /// Whether it is the one that is charged.
    is_default: bool,
    /// When we learnt of it.
    created_at: Timestamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = payment_methods)]
struct PaymentMethodRow {
    id: PaymentMethodId,
    kind: String,
    brand: Option<String>,
    last4: Option<String>,
    exp_month: Option<i64>,
    exp_year: Option<i64>,
    is_default: bool,
    created_at: Timestamp,
}

/// Saved payment methods, masked
///
/// The one that is charged comes first, then the newest.
#[operation(get "/billing/payment-methods", scope = "billing:read")]
pub fn list_payment_methods(read: &mut Read, caller: &Caller) -> Result<Rows<PaymentMethod>> {
    let rows: Vec<PaymentMethodRow> = payment_methods::table
        .filter(payment_methods::workspace_id.eq(caller.workspace_id()))
        .order((payment_methods::is_default.desc(), payment_methods::id.desc()))
        .select(PaymentMethodRow::as_select())
        .load(read.connection())?;
    let show = |row: PaymentMethodRow| PaymentMethod {
        object: "payment_method",
        id: row.id,
        kind: row.kind,
        brand: row.brand,
        last4: row.last4,
        exp_month: row.exp_month,
        exp_year: row.exp_year,
        is_default: row.is_default,
        created_at: row.created_at,
    };
    Ok(Rows(rows.into_iter().map(show).collect()))
}
