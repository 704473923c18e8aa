//! Energy in money. Money is counted in millionths of a dollar ("micros"); prices are micros per 1,000 Energy.

/// Micros in a cent.
pub(crate) const MICROS_PER_CENT: i64 = 10_000;

/// What `energy` costs at `price`, rounded up.
pub(crate) fn cost(energy: i64, price: i64) -> i64 {
    let product = i128::from(energy.max(0)) * i128::from(price.max(0));
    i64::try_from((product + 999) / 1000).unwrap_or(i64::MAX)
}

/// The most Energy that costs at most `micros` at `price`.
pub(crate) fn affordable(micros: i64, price: i64) -> i64 {
    if price <= 0 {
        return i64::MAX;
    }
    i64::try_from(i128::from(micros.max(0)) * 1000 / i128::from(price)).unwrap_or(i64::MAX)
}

/// How much of a budget is spent, in whole per cent. A budget of nothing is spent from the start.
pub(crate) fn percent(spent_micros: i64, cap_cents: i64) -> i64 {
    let cap = i128::from(cap_cents) * i128::from(MICROS_PER_CENT);
    if cap <= 0 {
        return 100;
    }
    i64::try_from(i128::from(spent_micros.max(0)) * 100 / cap).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn money_is_rounded_up_and_shares_down() {
        assert_eq!(cost(1, 1_000_000), 1_000);
        assert_eq!(cost(1, 1), 1);
        assert_eq!(cost(1_001, 1), 2);
        assert_eq!(cost(-5, 1_000), 0);
        assert_eq!(cost(i64::MAX, i64::MAX), i64::MAX);
        assert_eq!(affordable(1_999, 1_000_000), 1);
        assert_eq!(affordable(5, 0), i64::MAX);
        assert_eq!(percent(4_999, 1), 49);
        assert_eq!(percent(10_000, 1), 100);
        assert_eq!(percent(0, 0), 100);
    }

    proptest! {
        #[test]
        fn what_is_affordable_is_the_most(micros in 0i64..1_000_000_000_000, price in 1i64..10_000_000) {
            let energy = affordable(micros, price);
            prop_assert!(cost(energy, price) <= micros);
            prop_assert!(cost(energy + 1, price) > micros);
        }
    }
}
