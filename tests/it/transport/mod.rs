//! The connection, independent of the methods: framing, ids, malformed requests, limits, order, clients that do not
//! read, and the end of the daemon. protocol.md §1.

mod backpressure;
mod content_length;
mod ending;
mod lines;
mod logs;
mod requests;
