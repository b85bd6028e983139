//! The addresses of `--listen`.

use std::path::PathBuf;
use std::str::FromStr;

/// A place where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    /// stdin and stdout of this process.
    Stdio,
    /// A socket at this path.
    Unix(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match (kind, rest) {
            ("stdio", "") => Ok(Self::Stdio),
            ("unix", "") => Err("a path is missing: unix:PATH".to_owned()),
            ("unix", path) => Ok(Self::Unix(PathBuf::from(path))),
            ("ws", _) => Err("this version has no WebSocket: use unix:PATH".to_owned()),
            _ => Err("must be stdio or unix:PATH".to_owned()),
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
        assert_eq!(parse("unix:/a:b"), Ok(ListenAddress::Unix("/a:b".into())));
        for wrong in [
            "",
            "unix",
            "unix:",
            "stdio:x",
            "ws",
            "ws:127.0.0.1:0",
            "tcp:1",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
