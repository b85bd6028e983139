//! The machine's clock and randomness, and the ids of sessions, which are made from both.

use crate::lock::lock;
use crate::os::time;
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};
use treelined_core::id::{SessionId, Source};
use uuid::{ContextV7, Uuid};

/// The clock and the randomness of the machine.
pub struct SystemSource;

impl Source for SystemSource {
    fn now_ms(&self) -> i64 {
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        match time::system_now().duration_since(UNIX_EPOCH) {
            Ok(since) => millis(since),
            Err(before) => -millis(before.duration()),
        }
    }
    fn random(&self) -> Uuid {
        time::random()
    }
}

/// Like [`SystemSource`], for sessions to which several machines append at once: entry ids have 16
/// digits.
pub struct SharedSource;

impl Source for SharedSource {
    fn now_ms(&self) -> i64 {
        SystemSource.now_ms()
    }
    fn random(&self) -> Uuid {
        SystemSource.random()
    }
    fn id_digits(&self) -> usize {
        16
    }
}

/// Makes a session id. It is a UUIDv7, so that ids sort by creation.
pub fn new_session_id() -> SessionId {
    session_id_at(SystemSource.now_ms())
}

/// The ids of the same millisecond count up. Version 7 cannot represent times before 1970, so a clock
/// before 1970 counts as 1970.
fn session_id_at(now_ms: i64) -> SessionId {
    static COUNTER: Mutex<ContextV7> = Mutex::new(ContextV7::new());
    let since_1970 = Duration::from_millis(u64::try_from(now_ms).unwrap_or(0));
    let counter = lock(&COUNTER);
    let at = uuid::Timestamp::from_unix(&*counter, since_1970.as_secs(), since_1970.subsec_nanos());
    SessionId::new(Uuid::new_v7(at).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use treelined_core::id::is_valid;

    /// A clock before 1970 once made `create_session` panic, since version 7 ids cannot represent such times. Machines
    /// without a battery have such a clock after a power cut.
    #[test]
    fn session_ids_are_made_whatever_the_clock_says() {
        for now_ms in [i64::MIN, -1, 0, 1, 1_700_000_000_123, i64::MAX] {
            let [first, second] = [session_id_at(now_ms), session_id_at(now_ms)];
            assert!(is_valid(first.as_str()), "{first}");
            assert_ne!(first, second);
        }
        let [first, second] = [
            session_id_at(1_700_000_000_123),
            session_id_at(1_700_000_000_123),
        ];
        assert!(first < second, "{first} {second}");
        assert!(second < session_id_at(1_700_000_000_124));
    }
}
