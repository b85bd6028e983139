//! Damage and malice.
