//! Checks which servers of the settings answer now. All servers are asked for their greeting at the same time, for a
//! second.

use super::settings::NatsSettings;
use serde::Deserialize;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to answer.
const PROBE: Duration = Duration::from_secs(1);
/// The most bytes of a greeting.
const MOST_BYTES: u64 = 64 << 10;
const PORT: u16 = 4222;

/// A server of the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedServer {
    /// The address of the server, without a password.
    pub address: String,
    pub answers: bool,
    /// The name of the server, if its greeting has one.
    pub name: Option<String>,
}

/// The first message of a server.
#[derive(Deserialize)]
struct Greeting {
    server_name: String,
}

/// Asks all servers. The result has the order of the settings.
pub fn probe(settings: &NatsSettings) -> Vec<ProbedServer> {
    let (addresses, _) = settings.addresses();
    let (sender, answers) = mpsc::channel();
    for (number, address) in addresses.iter().enumerate() {
        let (sender, address) = (sender.clone(), address.clone());
        let begins_with_tls = settings.needs_tls || address.starts_with("tls://");
        // If the name of a server is not resolved in time, its thread continues, but nothing reads its answer.
        let asking = thread::Builder::new().name("probe".into());
        let _started = asking.spawn(move || {
            let _late = sender.send((number, ask(&address, begins_with_tls)));
        });
    }
    drop(sender);
    let server = |address: &String| ProbedServer {
        address: address.clone(),
        answers: false,
        name: None,
    };
    let mut servers: Vec<ProbedServer> = addresses.iter().map(server).collect();
    let until = Instant::now() + PROBE;
    while let Ok((number, answer)) =
        answers.recv_timeout(until.saturating_duration_since(Instant::now()))
    {
        if let (Some(server), Some(name)) = (servers.get_mut(number), answer) {
            (server.answers, server.name) = (true, name);
        }
    }
    servers
}

/// `None` if the server does not answer. Otherwise its name, if its greeting has one.
fn ask(address: &str, begins_with_tls: bool) -> Option<Option<String>> {
    let until = Instant::now() + PROBE;
    let left = || until.saturating_duration_since(Instant::now());
    let resolved = host_and_port(address).to_socket_addrs().ok()?;
    let connected = resolved
        .into_iter()
        .find_map(|at| TcpStream::connect_timeout(&at, left().max(Duration::from_millis(1))).ok());
    let stream = connected?;
    stream
        .set_read_timeout(Some(left().max(Duration::from_millis(1))))
        .ok()?;
    let mut line = String::new();
    let read = BufReader::new(stream.take(MOST_BYTES)).read_line(&mut line);
    let greeting = line.strip_prefix("INFO ");
    match (read, greeting) {
        (Ok(_), Some(greeting)) => {
            let greeting: Option<Greeting> = serde_json::from_str(greeting).ok();
            Some(greeting.map(|greeting| greeting.server_name))
        }
        // A server that begins with TLS may wait for the client before it sends anything.
        _ if begins_with_tls => Some(None),
        _ => None,
    }
}

/// `HOST:PORT` of an address.
fn host_and_port(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match has_port {
        true => host.to_owned(),
        false => format!("{host}:{PORT}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (address, expected) in [
            ("nats://n1.example", "n1.example:4222"),
            ("tls://n1.example:4223/", "n1.example:4223"),
            ("10.0.0.1:4224", "10.0.0.1:4224"),
            ("nats://[::1]", "[::1]:4222"),
        ] {
            assert_eq!(host_and_port(address), expected);
        }
    }

    /// A frozen server accepts connections, but sends nothing.
    #[test]
    fn a_server_that_says_nothing_does_not_answer() {
        let listeners: Vec<TcpListener> = (0..3)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let ports: Vec<u16> = listeners
            .iter()
            .map(|it| it.local_addr().unwrap().port())
            .collect();
        let mut listeners = listeners.into_iter();
        let (sound, _frozen) = (listeners.next().unwrap(), listeners.next().unwrap());
        drop(listeners);
        thread::spawn(move || {
            let (mut client, _) = sound.accept().unwrap();
            client
                .write_all(b"INFO {\"server_name\":\"n1\",\"port\":4222}\r\n")
                .unwrap();
            thread::sleep(2 * PROBE);
        });
        let of = |port: &u16| format!("nats://alice:secret@127.0.0.1:{port}");
        let settings = NatsSettings::of_servers(ports.iter().map(of).collect());
        let probed = probe(&settings);
        let answers: Vec<_> = probed
            .iter()
            .map(|it| (it.answers, it.name.as_deref()))
            .collect();
        assert_eq!(answers, [(true, Some("n1")), (false, None), (false, None)]);
        assert_eq!(probed[0].address, format!("nats://127.0.0.1:{}", ports[0]));
    }
}
