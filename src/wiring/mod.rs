//! The parts that the program gives the daemon (see `treelined_service::parts`): [`imports`] is the importer, which
//! replaces [`secrets`]; [`handoffs`] hands conversations over; [`accounts`] knows prices and counts usage.

pub(crate) mod accounts;
pub(crate) mod handoffs;
pub(crate) mod imports;
pub(crate) mod secrets;
