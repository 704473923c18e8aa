//! Invoices and payment methods, as a processor's adapter writes them and the API shows them.

use crate::app::{App, ids, keys};
use billing::processor::{
    InvoiceLine, InvoiceStatus, NewInvoice, NewPaymentMethod, forget_payment_method, record_invoice,
    record_payment_method,
};
use chrono::Duration;
use model::{Code, Env, Scope};
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn invoices_keep_their_own_paging(kind: Kind) {
    let app = App::new(kind).await;
    let workspace = app.bed.workspace;
    let invoice = |number: usize, status| NewInvoice {
        processor_id: format!("in_{number}"),
        number: format!("A-{number}"),
        status,
        total_cents: 2_900,
        currency: "USD".into(),
        pdf_url: None,
        lines: vec![InvoiceLine { description: "Starter".into(), quantity: 1, amount_cents: 2_900 }],
        due_at: None,
        paid_at: None,
    };
    let mut made = Vec::new();
    for number in 0..5 {
        app.bed.test.clock.advance(Duration::milliseconds(1));
        let new = invoice(number, InvoiceStatus::Open);
        made.push(app.bed.write(move |tx| record_invoice(tx, workspace, &new)).await.unwrap().to_string());
    }
    made.reverse();
    // Told again it is the same one, changed.
    let paid = invoice(4, InvoiceStatus::Paid);
    let again = app.bed.write(move |tx| record_invoice(tx, workspace, &paid)).await.unwrap();
    assert_eq!(again.as_str(), made[0]);
    let whole = app.page("/billing/invoices").await;
    assert_eq!(keys(&whole), ["success", "data"]);
    assert_eq!(ids(&whole["data"]), made);
    assert_eq!(whole["data"][0]["status"], "paid");
    assert_eq!(whole["data"][0]["lines"][0]["amount_cents"], 2_900);
    // Without `paginate`, `starting_after` is the processor's id, and the form stays.
    let rest = app.page("/billing/invoices?starting_after=in_3&limit=2").await;
    assert_eq!(keys(&rest), ["success", "data"]);
    assert_eq!(ids(&rest["data"]), made[2..4]);
    let first = app.page("/billing/invoices?paginate=true&limit=3").await;
    assert_eq!(ids(&first["data"]), made[..3]);
    let cursor = first["next_cursor"].as_str().unwrap();
    // A new invoice moves nothing.
    app.bed.test.clock.advance(Duration::milliseconds(1));
    let new = invoice(9, InvoiceStatus::Open);
    app.bed.write(move |tx| record_invoice(tx, workspace, &new)).await.unwrap();
    let second = app.page(&format!("/billing/invoices?paginate=true&limit=3&starting_after={cursor}")).await;
    assert_eq!(ids(&second["data"]), made[3..]);
    assert_eq!((&second["has_more"], &second["next_cursor"]), (&json!(false), &Value::Null));
    let one = app.get(&format!("/billing/invoices/{}", made[1])).await;
    assert_eq!((&one["processor_id"], &one["number"]), (&json!("in_3"), &json!("A-3")));
    let refusal = (400, "validation_error".to_owned(), "starting_after".to_owned());
    for query in ["starting_after=in_404", "paginate=true&starting_after=in_3", "starting_after="] {
        assert_eq!(app.refused(&format!("/billing/invoices?{query}")).await, refusal, "{query}");
    }
    assert_eq!(app.refused("/billing/invoices?paginate=yes").await.2, "paginate");
    assert_eq!(app.refused("/billing/invoices?paginate=true&limit=101").await.2, "limit");
    // The processor's ids of others are unknown here, and cannot be taken.
    let other = app.bed.other_workspace().await;
    let foreign = app.bed.key_of(other, Env::Live, vec![Scope::BillingRead], None, false).await;
    assert_eq!(app.get_with(&foreign, "/billing/invoices?starting_after=in_3").await.0, 400);
    assert_eq!(app.get_with(&foreign, &format!("/billing/invoices/{}", made[1])).await.0, 404);
    let stolen = invoice(3, InvoiceStatus::Void);
    let error = app.bed.write(move |tx| record_invoice(tx, other, &stolen)).await.unwrap_err();
    assert_eq!(error.code(), Code::DuplicateValue);
}

#[testkit::both]
async fn payment_methods_are_masked(kind: Kind) {
    let app = App::new(kind).await;
    let workspace = app.bed.workspace;
    let method = |number: u8, is_default| NewPaymentMethod {
        processor_id: format!("of-the-processor-{number}"),
        kind: "card".into(),
        brand: Some("visa".into()),
        last4: Some(format!("424{number}")),
        exp_month: Some(4),
        exp_year: Some(2030),
        is_default,
    };
    let record = async |new: NewPaymentMethod| {
        app.bed.write(move |tx| record_payment_method(tx, workspace, &new)).await
    };
    let first = record(method(1, true)).await.unwrap();
    record(method(2, true)).await.unwrap();
    assert_eq!(record(method(1, false)).await.unwrap(), first);
    let methods = app.get("/billing/payment-methods").await;
    assert_eq!(methods.as_array().unwrap().len(), 2);
    assert_eq!((&methods[0]["last4"], &methods[0]["is_default"]), (&json!("4242"), &json!(true)));
    assert_eq!((&methods[1]["last4"], &methods[1]["is_default"]), (&json!("4241"), &json!(false)));
    testkit::assert_absent(&methods.to_string(), "of-the-processor-1");
    let number = NewPaymentMethod { last4: Some("4242424242424242".into()), ..method(3, false) };
    assert_eq!(record(number).await.unwrap_err().param_name(), Some("last4"));
    let forget = async || {
        app.bed.write(move |tx| forget_payment_method(tx, workspace, "of-the-processor-1")).await.unwrap()
    };
    assert_eq!((forget().await, forget().await), (true, false));
}
