//! goose.
