//! Random numbers of a call: of the system, or repeatable ones for tests.

use std::cell::Cell;

/// Where a call's random numbers come from.
#[derive(Debug)]
pub enum Random {
    /// The system, at each draw.
    System,
    /// A sequence that a seed determines (SplitMix64).
    Seeded(Cell<u64>),
}

impl Random {
    /// A sequence that `seed` determines, or the system's numbers.
    pub fn new(seed: Option<u64>) -> Self {
        seed.map_or(Self::System, |seed| Self::Seeded(Cell::new(seed)))
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        match self {
            Self::System => system(),
            Self::Seeded(state) => {
                state.set(state.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
                let mut mixed = state.get();
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
        }
    }

    /// A number of at least 0 and below 1, as `Math.random` gives it.
    pub fn fraction(&self) -> f64 {
        let bits = self.next() >> 32;
        f64::from(u32::try_from(bits).unwrap_or(0)) / 4_294_967_296.0
    }

    /// Random bytes.
    pub fn bytes(&self, count: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next().to_le_bytes()).flatten().take(count).collect()
    }
}

/// A random number of the system.
pub fn system() -> u64 {
    let mut bytes = [0_u8; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_le_bytes(bytes),
        // Without random numbers nothing is safe to do.
        _ => crate::sys::exit_now(3),
    }
}
