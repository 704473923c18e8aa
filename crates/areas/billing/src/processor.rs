//! The door for payment processors: what an adapter must do for us, and what it tells us.
//!
//! An adapter implements [`PaymentProcessor`]. When the processor calls back, it verifies the call and writes what
//! happened with [`record_invoice`], [`record_payment_method`] and [`crate::ledger::grant`] in one transaction;
//! each of them may be told the same thing twice.
//!
//! Periods follow each other by themselves ([`crate::plans::renew`]). An adapter that cannot collect the fee of one
//! puts the subscription to `past_due`, and back to `active` once it could, with [`crate::plans::set_plan`].

use crate::schema::{invoices, payment_methods};
use diesel::prelude::*;
use model::{Code, Error, InvoiceId, JsonText, PaymentMethodId, Result, Timestamp, WorkspaceId, text_enum};
use operation::BoxFuture;
use serde::{Deserialize, Serialize};
use store::{Tx, each};

/// A processor of payments. Its calls speak to the outside, so none is made inside a transaction.
pub trait PaymentProcessor: Send + Sync {
    /// Makes an address where a person pays. Asking twice with the same `idempotency_key` gives the same link.
    ///
    /// The future fails with `service_unavailable` when the processor cannot be reached.
    fn create_payment_link(&self, payment: Payment) -> BoxFuture<Result<PaymentLink>>;

    /// Charges the workspace's saved payment method without anybody present. Asking twice with the same
    /// `idempotency_key` charges once. A card that is declined is no error.
    ///
    /// The future fails with `service_unavailable` when the processor cannot be reached; whether it charged is then
    /// not known, and the same request must be sent again.
    fn charge_off_session(&self, payment: Payment) -> BoxFuture<Result<Charged>>;

    /// Asks the processor for an invoice as it is now, by the processor's own id. `None` where it knows none.
    ///
    /// The future fails with `service_unavailable` when the processor cannot be reached.
    fn fetch_invoice(
        &self,
        workspace: WorkspaceId,
        processor_id: String,
    ) -> BoxFuture<Result<Option<NewInvoice>>>;
}

/// What is to be paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// Who pays.
    pub workspace: WorkspaceId,
    /// How much, in cents, at least 1.
    pub amount_cents: i64,
    /// ISO 4217, upper case.
    pub currency: String,
    /// What the payer reads.
    pub description: String,
    /// Names this payment: the same key never charges twice.
    pub idempotency_key: String,
}

/// An address where a person pays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentLink {
    /// The address.
    pub url: String,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
}

/// How a charge ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Charged {
    /// The money is there.
    Succeeded {
        /// The processor's id of the payment.
        processor_id: String,
    },
    /// The payer must confirm at this address first.
    RequiresAction(PaymentLink),
    /// The processor refused.
    Declined {
        /// The processor's word for why.
        decline_code: String,
    },
}

text_enum! {
    /// The status of an invoice.
    pub enum InvoiceStatus {
        /// Not issued yet.
        Draft = "draft",
        /// Issued and not paid.
        Open = "open",
        /// Paid.
        Paid = "paid",
        /// Cancelled.
        Void = "void",
        /// Written off.
        Uncollectible = "uncollectible",
    }
}

/// A line of an invoice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(example = json!({ "description": "Starter", "quantity": 1, "amount_cents": 2900 }))]
pub struct InvoiceLine {
    /// What is charged.
    pub description: String,
    /// The quantity.
    pub quantity: i64,
    /// The amount of the line in cents. Negative for a credit.
    pub amount_cents: i64,
}

/// An invoice as the processor has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInvoice {
    /// The processor's own id.
    pub processor_id: String,
    /// The invoice number.
    pub number: String,
    /// The status.
    pub status: InvoiceStatus,
    /// The total in cents.
    pub total_cents: i64,
    /// ISO 4217, upper case.
    pub currency: String,
    /// Where its PDF is.
    pub pdf_url: Option<String>,
    /// The lines of the invoice.
    pub lines: Vec<InvoiceLine>,
    /// When it is due.
    pub due_at: Option<Timestamp>,
    /// When it was paid.
    pub paid_at: Option<Timestamp>,
}

#[derive(Insertable)]
#[diesel(table_name = invoices, treat_none_as_default_value = false)]
struct InvoiceRow<'a> {
    workspace_id: WorkspaceId,
    id: InvoiceId,
    processor_id: &'a str,
    created_at: Timestamp,
    #[diesel(embed)]
    state: InvoiceState<'a>,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = invoices, treat_none_as_null = true, treat_none_as_default_value = false)]
struct InvoiceState<'a> {
    number: &'a str,
    status: InvoiceStatus,
    total_cents: i64,
    currency: &'a str,
    pdf_url: Option<&'a str>,
    lines: JsonText,
    due_at: Option<Timestamp>,
    paid_at: Option<Timestamp>,
}

impl<'a> InvoiceState<'a> {
    fn of(invoice: &'a NewInvoice) -> Self {
        Self {
            number: &invoice.number,
            status: invoice.status,
            total_cents: invoice.total_cents,
            currency: &invoice.currency,
            pdf_url: invoice.pdf_url.as_deref(),
            lines: JsonText::of(&invoice.lines),
            due_at: invoice.due_at,
            paid_at: invoice.paid_at,
        }
    }
}

/// Writes an invoice as the processor tells it, new or changed, and gives our id of it.
///
/// # Errors
/// `duplicate_value` where the processor's id belongs to another workspace: something is badly wrong then.
pub fn record_invoice(tx: &mut Tx, workspace: WorkspaceId, invoice: &NewInvoice) -> Result<InvoiceId> {
    use invoices as i;
    let row = InvoiceRow {
        workspace_id: workspace,
        id: InvoiceId::new(tx.now(), &*tx.random()),
        processor_id: &invoice.processor_id,
        created_at: tx.now(),
        state: InvoiceState::of(invoice),
    };
    let written = each!(tx.connection(), |connection| diesel::insert_into(i::table)
        .values(&row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    if written == 1 {
        return Ok(row.id);
    }
    let own =
        i::table.filter(i::workspace_id.eq(workspace)).filter(i::processor_id.eq(&invoice.processor_id));
    let id: Option<InvoiceId> = own.select(i::id).first(tx.connection()).optional()?;
    let id = id.ok_or_else(foreign)?;
    diesel::update(own).set(InvoiceState::of(invoice)).execute(tx.connection())?;
    Ok(id)
}

fn foreign() -> Error {
    Error::new(Code::DuplicateValue, "The processor's id belongs to another workspace.")
}

/// A saved payment method. No number of a card ever comes here: four digits are all we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPaymentMethod {
    /// The processor's own id.
    pub processor_id: String,
    /// Such as `card` or `bank_account`.
    pub kind: String,
    /// Such as `visa`.
    pub brand: Option<String>,
    /// The last four digits.
    pub last4: Option<String>,
    /// The month in which it ends, 1 to 12.
    pub exp_month: Option<i64>,
    /// The year in which it ends.
    pub exp_year: Option<i64>,
    /// Whether it is the one that is charged. The others then are not.
    pub is_default: bool,
}

#[derive(Insertable)]
#[diesel(table_name = payment_methods, treat_none_as_default_value = false)]
struct MethodRow<'a> {
    workspace_id: WorkspaceId,
    id: PaymentMethodId,
    processor_id: &'a str,
    created_at: Timestamp,
    #[diesel(embed)]
    state: MethodState<'a>,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = payment_methods, treat_none_as_null = true, treat_none_as_default_value = false)]
struct MethodState<'a> {
    kind: &'a str,
    brand: Option<&'a str>,
    last4: Option<&'a str>,
    exp_month: Option<i64>,
    exp_year: Option<i64>,
    is_default: bool,
}

impl<'a> MethodState<'a> {
    fn of(method: &'a NewPaymentMethod) -> Self {
        Self {
            kind: &method.kind,
            brand: method.brand.as_deref(),
            last4: method.last4.as_deref(),
            exp_month: method.exp_month,
            exp_year: method.exp_year,
            is_default: method.is_default,
        }
    }
}

/// Writes a payment method as the processor tells it, new or changed, and gives our id of it.
///
/// # Errors
/// `validation_error` for `last4` that is more than four characters, which would be a number that must not be
/// stored; `duplicate_value` where the processor's id belongs to another workspace.
pub fn record_payment_method(
    tx: &mut Tx,
    workspace: WorkspaceId,
    method: &NewPaymentMethod,
) -> Result<PaymentMethodId> {
    use payment_methods as p;
    if method.last4.as_ref().is_some_and(|digits| digits.chars().count() > 4) {
        return Err(Error::invalid("last4", "must have at most 4 characters"));
    }
    if method.is_default {
        diesel::update(p::table.filter(p::workspace_id.eq(workspace)))
            .set(p::is_default.eq(false))
            .execute(tx.connection())?;
    }
    let row = MethodRow {
        workspace_id: workspace,
        id: PaymentMethodId::new(tx.now(), &*tx.random()),
        processor_id: &method.processor_id,
        created_at: tx.now(),
        state: MethodState::of(method),
    };
    let written = each!(tx.connection(), |connection| diesel::insert_into(p::table)
        .values(&row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    if written == 1 {
        return Ok(row.id);
    }
    let own = p::table.filter(p::workspace_id.eq(workspace)).filter(p::processor_id.eq(&method.processor_id));
    let id: Option<PaymentMethodId> = own.select(p::id).first(tx.connection()).optional()?;
    let id = id.ok_or_else(foreign)?;
    diesel::update(own).set(MethodState::of(method)).execute(tx.connection())?;
    Ok(id)
}

/// Forgets a payment method that the processor no longer has. `false` where it was not known.
///
/// # Errors
/// When the database fails.
pub fn forget_payment_method(tx: &mut Tx, workspace: WorkspaceId, processor_id: &str) -> Result<bool> {
    let known = payment_methods::table
        .filter(payment_methods::workspace_id.eq(workspace))
        .filter(payment_methods::processor_id.eq(processor_id));
    Ok(diesel::delete(known).execute(tx.connection())? == 1)
}
