//! `GET /billing/invoices` and `GET /billing/invoices/{invoiceId}`.

use crate::processor::{InvoiceLine, InvoiceStatus};
use crate::schema::invoices;
use diesel::prelude::*;
use model::{Caller, Error, InvoiceId, JsonText, Result, Timestamp, WorkspaceId};
use operation::{Describe, FromInput, Input, Json, OptIn, OptInList, OptInPage, Paging, Path, operation};
use serde::Serialize;
use store::{OneRow, Read};
use utoipa::ToSchema;

/// An invoice.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "processor_id": "in_1042", "number": "2026-1042", "status": "paid", "total_cents": 2900,
    "currency": "USD", "paid_at": "2026-11-20T09:30:00.000Z",
}))]
pub struct Invoice {
    /// Always `invoice`.
    object: &'static str,
    /// The id.
    id: InvoiceId,
    /// The payment processor's id of the invoice.
    processor_id: String,
    /// The invoice number.
    number: String,
    /// The status.
    status: InvoiceStatus,
    /// The total in cents.
    total_cents: i64,
    /// The ISO 4217 currency code.
    currency: String,
    /// A link to the PDF, or `null`.
    pdf_url: Option<String>,
    /// The lines of the invoice.
    lines: Vec<InvoiceLine>,
    /// The due date, or `null`.
    due_at: Option<Timestamp>,
    /// When it was paid, or `null`.
    paid_at: Option<Timestamp>,
    /// When the object was recorded.
    created_at: Timestamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = invoices)]
struct StoredInvoice {
    id: InvoiceId,
    processor_id: String,
    number: String,
    status: InvoiceStatus,
    total_cents: i64,
    currency: String,
    pdf_url: Option<String>,
    lines: JsonText,
    due_at: Option<Timestamp>,
    paid_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl StoredInvoice {
    fn show(self) -> Result<Invoice> {
        Ok(Invoice {
            object: "invoice",
            status: self.status,
            id: self.id,
            processor_id: self.processor_id,
            number: self.number,
            total_cents: self.total_cents,
            currency: self.currency,
            pdf_url: self.pdf_url,
            lines: self.lines.parse()?,
            due_at: self.due_at,
            paid_at: self.paid_at,
            created_at: self.created_at,
        })
    }
}

/// An opt-in page with the invoices' own rule (specification 4.2): without `paginate=true`, `starting_after` is an
/// id of the payment processor and the answer stays an array.
#[derive(Debug, Clone)]
pub struct InvoicePage {
    page: OptIn,
    after_processor: Option<String>,
}

impl FromInput for InvoicePage {
    const PAGING: Option<Paging> = Some(Paging::OptIn);

    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        let starting_after = input.query_value("starting_after");
        let paged = match input.query_value("paginate") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Error::invalid("paginate", "must be true or false")),
        };
        let (cursor, processor) = if paged { (starting_after, None) } else { (None, starting_after) };
        Ok(Self {
            page: OptIn::read_with(input, paged, cursor)?,
            after_processor: processor.map(str::to_owned),
        })
    }

    fn describe(describe: &mut Describe, name: &'static str) {
        <OptIn as FromInput>::describe(describe, name);
    }
}

/// Invoices
///
/// Lists invoices, newest first. Without `paginate=true`, the response is an array, and `starting_after` is the payment
/// processor's id of an invoice.
#[operation(get "/billing/invoices", scope = "billing:read")]
pub fn list_invoices(read: &mut Read, caller: &Caller, page: InvoicePage) -> Result<OptInList<Invoice>> {
    let workspace = caller.workspace_id();
    let InvoicePage { page, after_processor } = page;
    let after = match (page.page(), after_processor) {
        (OptInPage::Array { .. }, Some(processor_id)) => Some(known(read, workspace, &processor_id)?),
        (page, _) => page.after()?,
    };
    let mut query = invoices::table
        .filter(invoices::workspace_id.eq(workspace))
        .order(invoices::id.desc())
        .limit(page.page().fetch())
        .select(StoredInvoice::as_select())
        .into_boxed();
    if let Some(after) = after {
        query = query.filter(invoices::id.lt(after));
    }
    let rows: Vec<StoredInvoice> = query.load(read.connection())?;
    let found = rows.into_iter().map(StoredInvoice::show).collect::<Result<_>>()?;
    Ok(page.answer(found, |invoice: &Invoice| invoice.id.to_string()))
}

fn known(read: &mut Read, workspace: WorkspaceId, processor_id: &str) -> Result<InvoiceId> {
    let id: Option<InvoiceId> = invoices::table
        .filter(invoices::workspace_id.eq(workspace))
        .filter(invoices::processor_id.eq(processor_id))
        .select(invoices::id)
        .first(read.connection())
        .optional()?;
    let rule = "is not the payment processor's id of an invoice of this workspace";
    id.ok_or_else(|| Error::invalid("starting_after", rule))
}

/// One invoice
///
/// Returns the invoice with its lines and a link to its PDF.
#[operation(get "/billing/invoices/{invoiceId}", scope = "billing:read")]
pub fn get_invoice(
    read: &mut Read,
    caller: &Caller,
    Path(invoice_id): Path<InvoiceId>,
) -> Result<Json<Invoice>> {
    let row: StoredInvoice = invoices::table
        .find((caller.workspace_id(), invoice_id))
        .select(StoredInvoice::as_select())
        .first(read.connection())
        .or_not_found("invoice")?;
    row.show().map(Json)
}
