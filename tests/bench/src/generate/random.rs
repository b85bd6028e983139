//! Random numbers, the same on every machine for the same seed.

/// The random generator SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not zero.
    pub(super) fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * u64::from(limit.max(1))) >> 32) as u32
    }

    pub(super) fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len() as u32) as usize]
    }

    pub(super) fn size(&mut self, sizes: &[(u32, u32)]) -> u32 {
        let at = self.below(1000);
        let upper = sizes
            .partition_point(|(mille, _)| *mille <= at)
            .min(sizes.len() - 1);
        let ((from, low), (to, high)) = (sizes[upper - 1], sizes[upper]);
        let span = u64::from(high - low) * u64::from(at - from) / u64::from(to - from);
        low + span as u32
    }
}
