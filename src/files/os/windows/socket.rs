//! Sockets of the file system, which the standard library does not have here.

use super::unsupported;
use std::fs::{File, FileType};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes of a socket's path.
pub(crate) const MAX_PATH_BYTES: usize = 107;

/// No socket is ever connected.
#[derive(Debug)]
pub(crate) enum Stream {}

/// No socket ever listens.
#[derive(Debug)]
pub(crate) enum Listener {}

/// As [`Stream`], in a runtime.
pub(crate) enum AsyncStream {}
pub(crate) type ReadHalf = AsyncStream;
pub(crate) type WriteHalf = AsyncStream;

/// The address of a socket, which there is none of.
#[derive(Debug)]
pub(crate) enum Address {}

/// The process on the other side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub user: u32,
    /// `None` if the system cannot tell.
    pub process: Option<u32>,
}

/// No socket is ever bound.
pub(crate) enum BoundSocket {}

/// Fails.
pub(crate) fn bind(_path: &Path) -> io::Result<BoundSocket> {
    Err(unsupported("listen on a socket"))
}

/// Fails.
pub(crate) fn connect(_path: &Path, _patience: Duration) -> io::Result<Stream> {
    Err(unsupported("connect to a shared daemon"))
}

/// Fails.
pub(crate) fn pair() -> io::Result<(Stream, Stream)> {
    Err(unsupported("connect extensions"))
}

/// Fails.
pub(crate) fn async_pair() -> io::Result<(AsyncStream, Stream)> {
    Err(unsupported("connect browsers"))
}

pub(crate) fn peer(stream: &Stream) -> io::Result<Peer> {
    match *stream {}
}

/// Does nothing: no file is a socket.
pub(crate) fn end(_socket: &File, _directions: Shutdown) {}

pub(crate) fn is_socket(_kind: FileType) -> bool {
    false
}

pub(crate) fn connections(_socket: &Path) -> Option<usize> {
    None
}

impl BoundSocket {
    pub(crate) fn listen(self, _backlog: i32) -> io::Result<Listener> {
        match self {}
    }
}

impl Address {
    pub(crate) fn as_pathname(&self) -> Option<&Path> {
        match *self {}
    }
}

impl Listener {
    pub(crate) fn accept(&self) -> io::Result<(Stream, Address)> {
        match *self {}
    }

    pub(crate) fn local_addr(&self) -> io::Result<Address> {
        match *self {}
    }

    pub(crate) fn set_nonblocking(&self, _is_nonblocking: bool) -> io::Result<()> {
        match *self {}
    }
}

impl Stream {
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        match *self {}
    }

    pub(crate) fn shutdown(&self, _directions: Shutdown) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn set_read_timeout(&self, _patience: Option<Duration>) -> io::Result<()> {
        match *self {}
    }
}

impl Read for &Stream {
    fn read(&mut self, _bytes: &mut [u8]) -> io::Result<usize> {
        match **self {}
    }
}

impl Read for Stream {
    fn read(&mut self, _bytes: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }
}

impl Write for &Stream {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match **self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match **self {}
    }
}

impl Write for Stream {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }
}

impl AsyncStream {
    pub(crate) fn into_split(self) -> (ReadHalf, WriteHalf) {
        match self {}
    }
}

impl AsyncRead for AsyncStream {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        _bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match *self {}
    }
}

impl AsyncWrite for AsyncStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        _bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match *self {}
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }
}
