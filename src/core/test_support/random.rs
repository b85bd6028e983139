//! Random choices for the tests of this crate and of `tests/it`. They are the same for the same seed on
//! every machine.

/// The random generator SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`. The limit must be above zero and below 2^32.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (((z >> 32) * limit as u64) >> 32) as usize
    }

    pub fn pick<'t, T: ?Sized>(&mut self, from: &[&'t T]) -> &'t T {
        from[self.below(from.len())]
    }
}
