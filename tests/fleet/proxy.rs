//! A network between a machine and a server. It can be cut, and it can hold all bytes back.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Passes connections to a server, until it is cut.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    network: Arc<Network>,
}

#[derive(Default)]
struct Network {
    link: Mutex<Link>,
    changed: Condvar,
}

#[derive(Default)]
struct Link {
    is_cut: bool,
    /// Whether bytes are received but not passed on.
    is_held: bool,
    streams: Vec<TcpStream>,
}

impl Proxy {
    /// Runs until the tests end.
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let network = Arc::<Network>::default();
        let accepting = Arc::clone(&network);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let mut link = accepting.link.lock().unwrap();
                if link.is_cut {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    for (from, to) in [(&client, &server), (&server, &client)] {
                        let ends = (from.try_clone().unwrap(), to.try_clone().unwrap());
                        pass_on(ends, &accepting);
                    }
                    link.streams.extend([client, server]);
                }
            }
        });
        Self { port, network }
    }

    /// Ends the connections, and takes no new ones.
    pub(crate) fn cut(&self) {
        let mut link = self.network.link.lock().unwrap();
        link.is_cut = true;
        for stream in link.streams.drain(..) {
            let _ended = stream.shutdown(Shutdown::Both);
        }
    }

    /// Passes nothing on, but keeps the connections open, like a network that loses all packets.
    pub(crate) fn hold(&self) {
        self.network.link.lock().unwrap().is_held = true;
    }

    /// Passes everything on again, and also the bytes that were held back.
    pub(crate) fn mend(&self) {
        let mut link = self.network.link.lock().unwrap();
        (link.is_cut, link.is_held) = (false, false);
        self.network.changed.notify_all();
    }
}

fn pass_on((mut from, mut to): (TcpStream, TcpStream), network: &Arc<Network>) {
    let network = Arc::clone(network);
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            let link = network.link.lock().unwrap();
            let passing = network.changed.wait_while(link, |link| link.is_held);
            drop(passing.unwrap());
            if to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        let _ended = to.shutdown(Shutdown::Both);
    });
}
