//! Unix sockets, and the user on the other side of a connection.

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::{File, FileType};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

pub use std::os::unix::net::{UnixListener as Listener, UnixStream as Stream};
pub use tokio::net::UnixStream as AsyncStream;
pub use tokio::net::unix::{OwnedReadHalf as ReadHalf, OwnedWriteHalf as WriteHalf};

/// The longest path of a socket in bytes. The address of the system has one more byte, for the NUL byte at the end.
#[cfg(target_os = "linux")]
pub const MAX_PATH_BYTES: usize = 107;
#[cfg(not(target_os = "linux"))]
pub(crate) const MAX_PATH_BYTES: usize = 103;

/// The process on the other side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    pub user: u32,
    /// The id of the process; `None` if the system does not provide it.
    pub process: Option<u32>,
}

/// A socket that has a file, but to which no client can connect yet.
pub struct BoundSocket(OwnedFd);

/// Makes a socket with the file `path` (0600).
pub fn bind(path: &Path) -> io::Result<BoundSocket> {
    let address = SocketAddrUnix::new(path)?;
    let socket = private_socket()?;
    rustix::net::bind(&socket, &address)?;
    Ok(BoundSocket(socket))
}

impl BoundSocket {
    /// Lets clients connect. At most `backlog` connections wait until they are accepted; the system may lower this
    /// number.
    pub fn listen(self, backlog: i32) -> io::Result<Listener> {
        rustix::net::listen(&self.0, backlog)?;
        Ok(Listener::from(self.0))
    }
}

/// A stream socket whose file will be private, whatever the umask is: on Linux `bind` takes the mode of the file from
/// the socket. On other systems the file is in a private folder of this user.
fn private_socket() -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let flags = SocketFlags::CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = SocketFlags::empty();
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    #[cfg(not(target_os = "linux"))]
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    #[cfg(target_os = "linux")]
    rustix::fs::fchmod(&socket, super::folder::FILE_MODE)?;
    Ok(socket)
}

/// Connects to the socket with this file. Fails with `ConnectionRefused` if no process listens, with `NotFound` if
/// there is no file, and with `WouldBlock` if the connection is not accepted within `patience`.
pub fn connect(path: &Path, patience: Duration) -> io::Result<Stream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = private_socket()?;
    // `connect` waits while the queue of the listener is full. This timeout limits the wait.
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    rustix::net::connect(&socket, &address)?;
    set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(Stream::from(socket))
}

/// The process on the other side of a connection.
#[cfg(target_os = "linux")]
pub fn peer(stream: impl AsFd) -> io::Result<Peer> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    Ok(Peer {
        user: peer.uid.as_raw(),
        process: u32::try_from(peer.pid.as_raw_nonzero().get()).ok(),
    })
}

/// The process on the other side of a connection.
#[cfg(not(target_os = "linux"))]
pub(crate) fn peer(stream: impl AsFd) -> io::Result<Peer> {
    let (user, _group) = nix::unistd::getpeereid(stream)?;
    Ok(Peer {
        user: user.as_raw(),
        process: None,
    })
}

/// Two connected sockets.
pub fn pair() -> io::Result<(Stream, Stream)> {
    Stream::pair()
}

/// Two connected sockets: one for the runtime of the caller, one for threads.
pub fn async_pair() -> io::Result<(AsyncStream, Stream)> {
    let (near, far) = Stream::pair()?;
    near.set_nonblocking(true)?;
    Ok((AsyncStream::from_std(near)?, far))
}

/// Shuts down a connection in these directions. Does nothing if the other side has closed it.
pub fn end(socket: &File, directions: Shutdown) {
    let directions = match directions {
        Shutdown::Read => rustix::net::Shutdown::Read,
        Shutdown::Write => rustix::net::Shutdown::Write,
        Shutdown::Both => rustix::net::Shutdown::Both,
    };
    let _ended = rustix::net::shutdown(socket, directions);
}

pub fn is_socket(kind: FileType) -> bool {
    kind.is_socket()
}

/// The number of connections to the socket with this file, as the system lists them; `None` if it does not list them.
#[cfg(target_os = "linux")]
pub fn connections(socket: &Path) -> Option<usize> {
    let table = std::fs::read("/proc/net/unix").ok()?;
    let table = String::from_utf8_lossy(&table);
    let socket = socket.to_str()?;
    // The columns are: Num RefCount Protocol Flags Type St Inode Path. The state 3 means connected.
    let is_connection = |line: &&str| {
        line.ends_with(socket)
            && line.split_whitespace().nth(5) == Some("03")
            && line.splitn(8, ' ').last() == Some(socket)
    };
    Some(table.lines().filter(is_connection).count())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn connections(_socket: &Path) -> Option<usize> {
    None
}
