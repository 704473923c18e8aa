//! The plans that the service comes with.

use auth::plans::{self, PlanRecord};
use model::Result;
use store::Tx;

/// A plan.
struct BuiltIn {
    id: &'static str,
    name: &'static str,
    description: &'static str,
    price_cents: i64,
    currency: &'static str,
    rate_limit_rpm: Option<i64>,
    monthly_quota: Option<i64>,
    test_runs_per_day: i64,
    contacts_limit: Option<i64>,
    included_energy: i64,
    usd_micros_per_1000_energy: i64,
    restricted: bool,
    position: i64,
    energy_metered: bool,
}

impl BuiltIn {
    fn record(&self) -> PlanRecord {
        PlanRecord {
            id: self.id.to_owned(),
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            price_cents: self.price_cents,
            currency: self.currency.to_owned(),
            rate_limit_rpm: self.rate_limit_rpm,
            monthly_quota: self.monthly_quota,
            test_runs_per_day: self.test_runs_per_day,
            contacts_limit: self.contacts_limit,
            included_energy: self.included_energy,
            usd_micros_per_1000_energy: self.usd_micros_per_1000_energy,
            restricted: self.restricted,
            position: self.position,
            energy_metered: self.energy_metered,
        }
    }
}

/// So many test runs a day that nobody reaches them.
const MOST_TEST_RUNS: i64 = 1_000_000;

/// A dollar for 1,000 Energy.
const BASE_PRICE: i64 = 1_000_000;

const CATALOGUE: [BuiltIn; 6] = [
    BuiltIn {
        id: "trial",
        name: "Trial",
        description: "To try everything for a while.",
        price_cents: 0,
        currency: "USD",
        rate_limit_rpm: Some(60),
        monthly_quota: Some(5_000),
        test_runs_per_day: 20,
        contacts_limit: Some(100),
        included_energy: 5_000,
        usd_micros_per_1000_energy: BASE_PRICE,
        restricted: false,
        position: 1,
        energy_metered: true,
    },
    BuiltIn {
        id: "starter",
        name: "Starter",
        description: "For a business with one or two agents.",
        price_cents: 2_900,
        currency: "USD",
        rate_limit_rpm: Some(300),
        monthly_quota: Some(50_000),
        test_runs_per_day: 100,
        contacts_limit: Some(2_000),
        included_energy: 20_000,
        usd_micros_per_1000_energy: BASE_PRICE,
        restricted: false,
        position: 2,
        energy_metered: true,
    },
    BuiltIn {
        id: "pro",
        name: "Pro",
        description: "For teams that work with agents all day.",
        price_cents: 9_900,
        currency: "USD",
        rate_limit_rpm: Some(1_000),
        monthly_quota: Some(500_000),
        test_runs_per_day: 500,
        contacts_limit: Some(20_000),
        included_energy: 80_000,
        usd_micros_per_1000_energy: BASE_PRICE,
        restricted: false,
        position: 3,
        energy_metered: true,
    },
    BuiltIn {
        id: "scale",
        name: "Scale",
        description: "For products built on the service.",
        price_cents: 49_900,
        currency: "USD",
        rate_limit_rpm: Some(3_000),
        monthly_quota: None,
        test_runs_per_day: 5_000,
        contacts_limit: None,
        included_energy: 450_000,
        usd_micros_per_1000_energy: BASE_PRICE,
        restricted: false,
        position: 4,
        energy_metered: true,
    },
    BuiltIn {
        id: "partner_zero",
        name: "Partner Zero",
        description: "No fixed fee, Energy at the premium rate. For approved partners.",
        price_cents: 0,
        currency: "USD",
        rate_limit_rpm: Some(300),
        monthly_quota: Some(50_000),
        test_runs_per_day: 100,
        contacts_limit: Some(2_000),
        included_energy: 0,
        usd_micros_per_1000_energy: BASE_PRICE / 2 * 3,
        restricted: true,
        position: 5,
        energy_metered: true,
    },
    BuiltIn {
        id: "unlimited",
        name: "Unlimited",
        description: "No quota and no ceiling, and Energy is not metered. For an installation of one's own.",
        price_cents: 0,
        currency: "USD",
        rate_limit_rpm: None,
        monthly_quota: None,
        test_runs_per_day: MOST_TEST_RUNS,
        contacts_limit: None,
        included_energy: 0,
        usd_micros_per_1000_energy: BASE_PRICE,
        restricted: true,
        position: 6,
        energy_metered: false,
    },
];

/// Adds the built-in plans that are missing. Those that are there stay as the operator left them.
///
/// # Errors
/// When the database fails.
pub fn seed_catalogue(tx: &mut Tx) -> Result<()> {
    CATALOGUE.iter().try_for_each(|plan| plans::add(tx, &plan.record()).map(drop))
}
