//! The addresses of `--listen`.

use std::path::PathBuf;
use std::str::FromStr;

/// A place where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    /// stdin and stdout of this process.
    Stdio,
    /// A socket at this path, or at that of the shared daemon.
    Unix(Option<PathBuf>),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match (kind, rest) {
            ("stdio", "") => Ok(Self::Stdio),
            ("unix", "") if text.ends_with(':') => Err("a path is missing: unix:PATH".to_owned()),
            ("unix", "") => Ok(Self::Unix(None)),
            ("unix", path) => Ok(Self::Unix(Some(PathBuf::from(path)))),
            ("ws", _) => Err("this version has no WebSocket: use unix:PATH".to_owned()),
            _ => Err("must be stdio, unix or unix:PATH".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_stdio_and_paths_of_sockets() {
        let parse = |text: &str| text.parse::<ListenAddress>();
        assert_eq!(parse("stdio"), Ok(ListenAddress::Stdio));
        let path = Some(PathBuf::from("/a:b"));
        assert_eq!(parse("unix:/a:b"), Ok(ListenAddress::Unix(path)));
        assert_eq!(parse("unix"), Ok(ListenAddress::Unix(None)));
        for wrong in ["", "unix:", "stdio:x", "ws", "ws:127.0.0.1:0", "tcp:1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
