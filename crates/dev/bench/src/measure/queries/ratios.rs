//! The distribution of ratios over a family of queries.

/// Ratios in ascending order.
pub struct Ratios(Vec<f64>);

impl Ratios {
    pub fn new(mut ratios: Vec<f64>) -> Self {
        ratios.sort_by(f64::total_cmp);
        Self(ratios)
    }

    /// Returns the ratio that a part (0 to 1) of the ratios do not exceed, by nearest rank.
    pub fn at(&self, part: f64) -> f64 {
        let rank = (self.0.len() as f64 * part).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// Returns the smallest ratio.
    pub fn least(&self) -> f64 {
        self.at(0.0)
    }

    /// Returns the greatest ratio.
    pub fn most(&self) -> f64 {
        self.at(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_nearest() {
        let ratios = Ratios::new((1..=40).rev().map(f64::from).collect());
        let found = [ratios.least(), ratios.at(0.1), ratios.at(0.5), ratios.most()];
        assert_eq!(found, [1.0, 4.0, 20.0, 40.0]);
        let few = Ratios::new(vec![2.0, 0.5, 9.0]);
        assert_eq!([few.least(), few.at(0.1), few.at(0.5), few.most()], [0.5, 0.5, 2.0, 9.0]);
        assert!(Ratios::new(Vec::new()).at(0.5).is_nan());
    }
}
