//! The addresses of a provider's API.

use reqwest::Url;
use std::net::IpAddr;

/// The address of this path of the API. It has the query of `base`.
pub(super) fn endpoint(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url.set_fragment(None);
    url
}

/// Whether the server is on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    match bare.unwrap_or(host).parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback() || ip.is_unspecified(),
        Err(_) => {
            let name = host.strip_suffix('.').unwrap_or(host);
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path was once appended to the query.
    #[test]
    fn the_path_comes_before_the_query() {
        for (base, expect) in [
            ("https://h", "https://h/v1/x"),
            ("https://h/a//", "https://h/a/v1/x"),
            ("https://h/a?v=1&w=%2F", "https://h/a/v1/x?v=1&w=%2F"),
            ("https://h/a/?v=1#f", "https://h/a/v1/x?v=1"),
        ] {
            let url = endpoint(&Url::parse(base).unwrap(), "/v1/x");
            assert_eq!(url.as_str(), expect);
        }
    }

    #[test]
    fn servers_on_this_machine_are_known() {
        let is_local = |url: &str| is_loopback(&Url::parse(url).unwrap());
        for url in [
            "http://localhost:1/v1",
            "http://a.localhost.",
            "http://127.8.9.1",
            "http://2130706433",
            "http://[::1]:80",
            "http://[::ffff:127.0.0.1]",
            "http://0.0.0.0",
        ] {
            assert!(is_local(url), "{url}");
        }
        for url in ["http://10.0.0.1", "http://localhost.example", "https://h"] {
            assert!(!is_local(url), "{url}");
        }
    }
}
