//! A network between a machine and a server, which can be cut.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Passes connections on to a server, until it is cut.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    link: Arc<Mutex<Link>>,
}

#[derive(Default)]
struct Link {
    is_cut: bool,
    streams: Vec<TcpStream>,
}

impl Proxy {
    /// Runs until the tests end.
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let link = Arc::<Mutex<Link>>::default();
        let accepting = Arc::clone(&link);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let mut link = accepting.lock().unwrap();
                if link.is_cut {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    for (from, to) in [(&client, &server), (&server, &client)] {
                        pass_on(from.try_clone().unwrap(), to.try_clone().unwrap());
                    }
                    link.streams.extend([client, server]);
                }
            }
        });
        Self { port, link }
    }

    /// Ends the connections, and takes no new ones.
    pub(crate) fn cut(&self) {
        let mut link = self.link.lock().unwrap();
        link.is_cut = true;
        for stream in link.streams.drain(..) {
            let _ended = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
        self.link.lock().unwrap().is_cut = false;
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        let _copied = io::copy(&mut from, &mut to);
        let _ended = to.shutdown(Shutdown::Both);
    });
}
