//! The beginning and the end of connections and of the daemon that they share.

use crate::harness::*;
use std::os::unix::fs::PermissionsExt;

#[test]
fn clients_of_one_socket_share_a_daemon() {
    let shared = SharedDaemon::start();
    let mut clients = [shared.connect(), shared.connect()];
    let [first, second] = clients.each_mut().map(|client| {
        let result = client.initialize(json!({"protocolVersion": 1}));
        result["instanceId"].clone()
    });
    assert_eq!(first, second);
    let mode = std::fs::metadata(&shared.socket).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
}

#[test]
fn the_end_of_a_connection_leaves_the_daemon_to_the_others() {
    let shared = SharedDaemon::start();
    let mut left = shared.connect();
    let mut stays = shared.connect();
    left.ok("shutdown", json!({}));
    assert_eq!(left.exited(), Some(0));
    drop(shared.connect());
    stays.ok("list_sessions", json!({}));
}
