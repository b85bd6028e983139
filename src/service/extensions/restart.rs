//! Decides when a program that has ended is started again. Pure: the caller gives the times.

use std::collections::VecDeque;
use std::time::Duration;

/// The most restarts within [`WINDOW`].
pub(super) const MAX_RESTARTS: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// The pause before the first restart. Each further restart within the window doubles the pause.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The restarts of one program within the last minute.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// The times of restarts, oldest first.
    recent: VecDeque<Duration>,
}

impl Restarts {
    /// The pause before the next restart of a program that ends at the time `now`; `None` if the program was restarted
    /// too often. Times count from any one instant.
    pub(super) fn pause_after_end(&mut self, now: Duration) -> Option<Duration> {
        while let Some(oldest) = self.recent.front()
            && now.saturating_sub(*oldest) >= WINDOW
        {
            self.recent.pop_front();
        }
        if self.recent.len() >= MAX_RESTARTS {
            return None;
        }
        let pause = FIRST_PAUSE * (1 << self.recent.len());
        self.recent.push_back(now + pause);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses after ends at these times. All times are in milliseconds.
    fn pauses(ends: &[u64]) -> Vec<Option<u64>> {
        let mut restarts = Restarts::default();
        let pause = |end: &u64| {
            let pause = restarts.pause_after_end(Duration::from_millis(*end));
            pause.map(|pause| pause.as_millis() as u64)
        };
        ends.iter().map(pause).collect()
    }

    #[test]
    fn a_program_that_ends_at_once_is_given_up_after_five_restarts() {
        let ends = [0, 200, 600, 1_400, 3_000, 6_200];
        let expect = [
            Some(200),
            Some(400),
            Some(800),
            Some(1_600),
            Some(3_200),
            None,
        ];
        assert_eq!(pauses(&ends), expect);
    }

    #[test]
    fn a_program_that_runs_for_a_minute_starts_anew() {
        assert_eq!(pauses(&[0, 60_200, 120_400]), [Some(200); 3]);
        assert_eq!(pauses(&[0, 60_199]), [Some(200), Some(400)]);
    }

    #[test]
    fn only_restarts_of_the_last_minute_count() {
        let ends = [0, 10_000, 20_000, 30_000, 40_000, 60_200, 61_000];
        let expect = [200, 400, 800, 1_600, 3_200, 3_200].map(Some);
        let actual = pauses(&ends);
        assert_eq!(actual.get(..6), Some(&expect[..]));
        assert_eq!(actual.last(), Some(&None), "five in the last minute");
    }
}
