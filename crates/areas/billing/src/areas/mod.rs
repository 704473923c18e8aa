//! The areas of the contract that this crate answers: Identity and Billing.
//!
//! Every operation here reads. A workspace's money is changed by its runs, by the payment processor and by whoever
//! runs the service, never through the API.

mod access;
mod budgets;
mod energy;
mod executions;
mod identity;
mod invoices;
mod ledger;
mod payment_methods;
mod plans;
mod subscription;
mod usage;

pub use executions::Traces;

use operation::{Domain, EventType, Operations};

/// Who a key is.
pub struct Identity;

impl Domain for Identity {
    const AREA: &'static str = "Identity";
    const ORDER: u16 = 10;
    const DESCRIPTION: &'static str = "The API key of the request: its workspace, scopes and limits, and the OAuth app that acts through it.";

    fn operations() -> Operations {
        vec![Box::new(identity::GetMe)]
    }

    fn event_types() -> Vec<EventType> {
        EventType::of::<oauth::AppEvent<'_>>()
    }
}

/// What a workspace has, spends and pays.
pub struct Billing;

impl Domain for Billing {
    const AREA: &'static str = "Billing";
    const ORDER: u16 = 40;
    const DESCRIPTION: &'static str = "The workspace's subscription, its Energy balance and ledger, usage, budgets of keys, invoices and \
         payment methods. All operations are read-only.";

    fn operations() -> Operations {
        vec![
            Box::new(access::GetBillingAccess),
            Box::new(plans::ListPlans),
            Box::new(subscription::GetSubscription),
            Box::new(energy::GetEnergyBalance),
            Box::new(ledger::ListEnergyLedger),
            Box::new(executions::ListExecutions),
            Box::new(executions::GetExecution),
            Box::new(usage::GetUsage),
            Box::new(budgets::ListBudgets),
            Box::new(invoices::ListInvoices),
            Box::new(invoices::GetInvoice),
            Box::new(payment_methods::ListPaymentMethods),
        ]
    }

    fn event_types() -> Vec<EventType> {
        let mut types = EventType::of::<crate::ledger::BudgetEvent<'_>>();
        types.extend(EventType::of::<crate::ledger::Recharged<'_>>());
        types
    }
}

/// What the Billing area is told by the binary.
#[derive(Debug, Clone)]
pub struct BillingSettings {
    /// The page for buying Energy, if there is one.
    pub recharge_url: Option<String>,
}
