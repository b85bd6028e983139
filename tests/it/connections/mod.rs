//! Several connections to one daemon: protocol.md §9.

mod lifetime;
