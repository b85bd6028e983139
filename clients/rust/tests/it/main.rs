//! The client against the real daemon, a file per subject. `fixture` has daemons and what they are told,
//! `impostor` what no real daemon does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that stumbles fails, and says where"
)]

mod answers;
mod calls;
mod fixture;
mod impostor;
mod lifetime;
mod notifications;
mod readme;
mod transport;
