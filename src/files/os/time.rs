//! The clocks and the randomness of the machine. With the feature `simulation`, a seed decides about both.

#[cfg(feature = "simulation")]
use super::simulated;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

/// The time of a clock that never goes back.
pub fn now() -> Instant {
    #[cfg(feature = "simulation")]
    return simulated::now();
    #[cfg(not(feature = "simulation"))]
    Instant::now()
}

/// The time since `began`.
pub fn since(began: Instant) -> Duration {
    now().saturating_duration_since(began)
}

/// The time of day.
pub fn system_now() -> SystemTime {
    #[cfg(feature = "simulation")]
    return simulated::system_now();
    #[cfg(not(feature = "simulation"))]
    SystemTime::now()
}

/// Waits on this thread.
pub fn sleep(pause: Duration) {
    #[cfg(feature = "simulation")]
    return simulated::sleep(pause);
    #[cfg(not(feature = "simulation"))]
    std::thread::sleep(pause);
}

/// 122 random bits.
pub fn random() -> Uuid {
    #[cfg(feature = "simulation")]
    return simulated::random();
    #[cfg(not(feature = "simulation"))]
    Uuid::new_v4()
}
