//! The rankings that are kept for later pages.

use super::ranked::Ranking;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use treelined_files::kept::{Kept, KeptPart};
use treelined_files::lock::lock;

/// The most rankings that are kept, and how long each is kept.
const MOST: usize = 8;
const KEPT: Duration = Duration::from_secs(600);

/// The last rankings of a daemon.
#[derive(Debug)]
pub struct Rankings {
    /// The name of this daemon. The same number in a name from another daemon means another ranking.
    daemon: String,
    kept: Arc<Mutex<KeptRankings>>,
}

#[derive(Debug, Default)]
struct KeptRankings {
    next: u64,
    /// The oldest first.
    all: VecDeque<KeptRanking>,
}

#[derive(Debug)]
struct KeptRanking {
    number: u64,
    since: Instant,
    ranking: Arc<Ranking>,
    part: KeptPart,
}

impl Rankings {
    /// `daemon` is a name that no other daemon has.
    pub fn new(daemon: &str) -> Self {
        Self {
            daemon: daemon.to_owned(),
            kept: Arc::default(),
        }
    }

    /// Keeps a ranking if `memory` has room; returns its name.
    pub fn keep(&self, ranking: Arc<Ranking>, memory: &Arc<Kept>) -> String {
        let number = {
            let mut kept = lock(&self.kept);
            kept.next += 1;
            kept.next
        };
        let all = Arc::downgrade(&self.kept);
        let part = memory.take(ranking.bytes(), move || {
            if let Some(all) = all.upgrade()
                && let Ok(mut kept) = all.try_lock()
            {
                kept.all.retain(|one| one.number != number);
            }
        });
        if let Some(part) = part {
            let mut kept = lock(&self.kept);
            kept.all.push_back(KeptRanking {
                number,
                since: Instant::now(),
                ranking,
                part,
            });
            if kept.all.len() > MOST {
                kept.all.pop_front();
            }
        }
        format!("{number}.{}", self.daemon)
    }

    /// The ranking of this name; `None` if it is not kept any more, or another daemon gave the name.
    pub fn get(&self, name: &str) -> Option<Arc<Ranking>> {
        self.get_at(name, Instant::now())
    }

    fn get_at(&self, name: &str, now: Instant) -> Option<Arc<Ranking>> {
        let (number, daemon) = name.split_once('.')?;
        let number: u64 = number.parse().ok().filter(|_| daemon == self.daemon)?;
        let mut kept = lock(&self.kept);
        kept.all
            .retain(|one| now.saturating_duration_since(one.since) < KEPT);
        let found = kept.all.iter().find(|one| one.number == number)?;
        found.part.used();
        Some(Arc::clone(&found.ranking))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::gather::Gathered;
    use crate::ask::tests::asked;
    use crate::outcome::Totals;

    fn memory() -> Arc<Kept> {
        Arc::default()
    }

    fn ranking() -> Arc<Ranking> {
        let request = asked("a");
        Arc::new(Ranking::new(
            request,
            Gathered::default(),
            Totals::default(),
        ))
    }

    #[test]
    fn the_last_eight_rankings_are_kept() {
        let rankings = Rankings::new("a");
        let first = rankings.keep(ranking(), &memory());
        for _ in 1..MOST {
            rankings.keep(ranking(), &memory());
        }
        assert!(rankings.get(&first).is_some());
        let last = rankings.keep(ranking(), &memory());
        assert!(rankings.get(&first).is_none() && rankings.get(&last).is_some());
    }

    #[test]
    fn a_ranking_is_kept_for_ten_minutes() {
        let rankings = Rankings::new("a");
        let before = Instant::now();
        let name = rankings.keep(ranking(), &memory());
        let after = |seconds| before + Duration::from_secs(seconds);
        assert!(rankings.get_at(&name, after(599)).is_some());
        // This is a minute later than the limit, since the machine may have paused before the ranking was kept.
        assert!(rankings.get_at(&name, after(660)).is_none());
        assert!(rankings.get(&name).is_none());
    }

    /// The numbers of rankings begin again in each daemon. A cursor from an earlier daemon once named a page of another
    /// question.
    #[test]
    fn a_name_is_of_one_daemon() {
        let name = Rankings::new("a").keep(ranking(), &memory());
        let later = Rankings::new("b");
        later.keep(ranking(), &memory());
        assert!(later.get(&name).is_none());
        for name in ["", "1", "1.", ".b", "x.b", "1.b.b"] {
            assert!(later.get(name).is_none(), "{name}");
        }
    }
}
