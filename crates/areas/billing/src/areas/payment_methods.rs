//! `GET /billing/payment-methods`.

use crate::schema::payment_methods;
use diesel::prelude::*;
use model::{Caller, PaymentMethodId, Result, Timestamp};
use operation::{Rows, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// A saved payment method. Its details are stored by the payment processor.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "kind": "card", "brand": "visa", "last4": "4242", "exp_month": 12, "exp_year": 2030, "is_default": true,
}))]
pub struct PaymentMethod {
    /// Always `payment_method`.
    object: &'static str,
    /// The id.
    id: PaymentMethodId,
    /// The type, such as `card`.
    kind: String,
    /// The brand, such as `visa`, or `null`.
    brand: Option<String>,
    /// The last four digits, or `null`.
    last4: Option<String>,
    /// The month in which it expires, or `null`.
    exp_month: Option<i64>,
    /// The year in which it expires, or `null`.
    exp_year: Option<i64>,
    /// Whether this payment method is charged by default.
    is_default: bool,
    /// When the object was recorded.
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
/// Lists the saved payment methods: the default one first, then the newest. Only the last four digits are stored.
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
