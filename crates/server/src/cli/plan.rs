//! Plans, for whoever has the machine.

use super::arguments::{Json, workspace_id};
use super::output;
use crate::values::{self, Limit, limit, whole};
use auth::plans::PlanRecord;
use billing::plans;
use clap::{Args, Subcommand};
use model::{Code, Error, Result, SubscriptionStatus, Timestamp};
use serde_json::Value;
use store::Db;

/// So much that sums of it stay far from where integers end.
const MOST: i64 = 1_000_000_000_000;

#[derive(Subcommand)]
pub(super) enum PlanCommand {
    /// List all plans.
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Create a plan. What is not given is as in the plan `starter` of the price 0, without included Energy.
    Create {
        /// Its id, such as `gold`.
        #[arg(value_parser = values::plan_id)]
        plan: String,
        #[command(flatten)]
        terms: Terms,
        #[command(flatten)]
        json: Json,
    },
    /// Change a plan, for all workspaces that have it. They notice within 10 seconds.
    Update {
        /// Its id.
        plan: String,
        #[command(flatten)]
        terms: Terms,
        #[command(flatten)]
        json: Json,
    },
    /// Put a workspace on a plan, and give the Energy that it includes.
    ///
    /// A plan is monthly and goes on until it is changed: each period brings its Energy, once. Setting the plan that a
    /// workspace has changes its status or its end and begins no new period.
    Set {
        /// Its id or slug.
        #[arg(long)]
        workspace: String,
        /// The plan, such as `starter` or `unlimited`. `svc plan list` shows all.
        #[arg(long)]
        plan: String,
        /// `active`, `trialing`, `sponsored`, `past_due`, `canceled` or `inactive`.
        #[arg(long, default_value = "active", value_parser = values::subscription)]
        status: SubscriptionStatus,
        /// When the period ends, in RFC 3339; a month after it began if not given. `trialing` and `past_due` need it:
        /// the trial's end, and the day on which the payment was due. `canceled` without it is over at once.
        #[arg(long, value_parser = values::time)]
        until: Option<Timestamp>,
        /// The period is the last: at its end the plan is cancelled.
        #[arg(long)]
        cancel_at_end: bool,
        #[command(flatten)]
        json: Json,
    },
}

/// What is said of a plan.
#[derive(Args)]
pub(super) struct Terms {
    /// The name for people.
    #[arg(long, value_parser = values::name)]
    name: Option<String>,
    /// One sentence for people.
    #[arg(long, value_parser = values::description)]
    description: Option<String>,
    /// The monthly fee in cents.
    #[arg(long, value_parser = whole::<i64, 0, MOST>, allow_negative_numbers = true)]
    price_cents: Option<i64>,
    /// The ISO 4217 code of the fee's currency.
    #[arg(long, value_parser = values::currency)]
    currency: Option<String>,
    /// Requests per minute of each key, or `none` for no limit.
    #[arg(long, value_name = "N|none", value_parser = limit::<1, 1_000_000>, allow_negative_numbers = true)]
    rpm: Option<Limit>,
    /// Requests per month of each key, or `none` for no limit.
    #[arg(long, value_name = "N|none", value_parser = limit::<0, MOST>, allow_negative_numbers = true)]
    quota: Option<Limit>,
    /// Contacts of the workspace, or `none` for no limit.
    #[arg(long, value_name = "N|none", value_parser = limit::<0, MOST>, allow_negative_numbers = true)]
    contacts: Option<Limit>,
    /// Test runs of the workspace per day.
    #[arg(long, value_parser = whole::<i64, 0, 1_000_000>, allow_negative_numbers = true)]
    test_runs_per_day: Option<i64>,
    /// Energy that each period brings.
    #[arg(long, value_parser = whole::<i64, 0, MOST>, allow_negative_numbers = true)]
    included_energy: Option<i64>,
    /// The price of 1,000 Energy in millionths of a US dollar.
    #[arg(long, value_parser = whole::<i64, 0, 1_000_000_000>, allow_negative_numbers = true)]
    usd_micros_per_1000_energy: Option<i64>,
    /// Whether work is paid from the balance of Energy. With `false` its cost is only recorded.
    #[arg(long)]
    energy_metered: Option<bool>,
    /// Whether the plan is shown only to workspaces that have it.
    #[arg(long)]
    restricted: Option<bool>,
    /// Its place in lists.
    #[arg(long, value_parser = whole::<i64, 0, 1_000_000>, allow_negative_numbers = true)]
    position: Option<i64>,
}

impl Terms {
    /// Writes what is given into a plan.
    fn apply(&self, plan: &mut PlanRecord) {
        fn set<T: Clone>(place: &mut T, given: Option<&T>) {
            if let Some(given) = given {
                place.clone_from(given);
            }
        }
        set(&mut plan.name, self.name.as_ref());
        set(&mut plan.description, self.description.as_ref());
        set(&mut plan.price_cents, self.price_cents.as_ref());
        set(&mut plan.currency, self.currency.as_ref());
        set(&mut plan.rate_limit_rpm, self.rpm.map(|limit| limit.0).as_ref());
        set(&mut plan.monthly_quota, self.quota.map(|limit| limit.0).as_ref());
        set(&mut plan.contacts_limit, self.contacts.map(|limit| limit.0).as_ref());
        set(&mut plan.test_runs_per_day, self.test_runs_per_day.as_ref());
        set(&mut plan.included_energy, self.included_energy.as_ref());
        set(&mut plan.usd_micros_per_1000_energy, self.usd_micros_per_1000_energy.as_ref());
        set(&mut plan.energy_metered, self.energy_metered.as_ref());
        set(&mut plan.restricted, self.restricted.as_ref());
        set(&mut plan.position, self.position.as_ref());
    }
}

/// What a new plan is like before its terms.
fn blank(id: &str, position: i64) -> PlanRecord {
    PlanRecord {
        id: id.to_owned(),
        name: id.to_owned(),
        description: String::new(),
        price_cents: 0,
        currency: "USD".to_owned(),
        rate_limit_rpm: Some(300),
        monthly_quota: Some(50_000),
        test_runs_per_day: 100,
        contacts_limit: Some(2_000),
        included_energy: 0,
        usd_micros_per_1000_energy: 1_000_000,
        restricted: false,
        position,
        energy_metered: true,
    }
}

pub(super) async fn plan(db: Db, command: PlanCommand) -> Result<()> {
    // Whatever is done with plans, those that the service comes with are there.
    db.write(plans::seed_catalogue).await?;
    match command {
        PlanCommand::List { json } => {
            let plans = db.read(|read| auth::plans::list(read, None)).await?;
            output::rows(&plans.iter().map(shown).collect::<Result<Vec<_>>>()?, json.json)?;
        }
        PlanCommand::Create { plan, terms, json } => {
            let made = db.write(move |tx| {
                let last = auth::plans::list(tx, None)?.iter().map(|plan| plan.position).max();
                let mut made = blank(&plan, last.unwrap_or(0) + 1);
                terms.apply(&mut made);
                if auth::plans::add(tx, &made)? {
                    return Ok(made);
                }
                Err(Error::new(
                    Code::DuplicateValue,
                    format!("There is a plan {plan}: `svc plan update` changes it."),
                ))
            });
            output::object(&shown(&made.await?)?, json.json)?;
        }
        PlanCommand::Update { plan, terms, json } => {
            let changed = db.write(move |tx| {
                let mut changed = auth::plans::by_id(tx, &plan)?.ok_or_else(|| missing(&plan))?;
                terms.apply(&mut changed);
                auth::plans::put(tx, &changed)?;
                Ok(changed)
            });
            output::object(&shown(&changed.await?)?, json.json)?;
        }
        PlanCommand::Set { workspace, plan, status, until, cancel_at_end, json } => {
            let changed = db.write(move |tx| {
                let id = workspace_id(tx, &workspace)?;
                let mut changed = plans::set_plan(tx, id, &plan, status, until)?;
                if cancel_at_end {
                    changed = plans::cancel_at_period_end(tx, id)?;
                }
                plans::grant_included(tx, id)?;
                Ok(changed)
            });
            output::object(&serde_json::to_value(changed.await?).map_err(Error::internal)?, json.json)?;
        }
    }
    Ok(())
}

fn missing(plan: &str) -> Error {
    Error::invalid("plan", format_args!("{plan} is not in the catalogue: `svc plan list` shows it"))
}

fn shown(plan: &PlanRecord) -> Result<Value> {
    serde_json::to_value(plan).map_err(Error::internal)
}
