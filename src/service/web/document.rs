//! The live page: a document that has no text of a session, and its headers.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue};
use std::sync::LazyLock;
use treelined_pages::page::{SCRIPT, STYLE, policy};

/// The document. Its element `treelined-live` says to the script that the session is not in the file.
pub(super) fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        format!(
            "<!doctype html>\n\
             <html lang=\"en\">\n\
             <head>\n\
             <meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"generator\" content=\"treelined {version}\">\n\
             <meta name=\"treelined-live\" content=\"1\">\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <title>treelined</title>\n\
             <style>{STYLE}</style>\n\
             </head>\n\
             <body>\n\
             <div id=\"app\"></div>\n\
             <noscript>This page needs JavaScript. <code>treelined export --html</code> writes one that does not.</noscript>\n\
             <script>{SCRIPT}</script>\n\
             </body>\n\
             </html>\n",
            version = env!("CARGO_PKG_VERSION"),
        )
    });
    &TEXT
}

/// The headers of the document. `host` is the name that the browser has for this server.
pub(super) fn headers(host: &str) -> Option<HeaderMap> {
    static POLICY: LazyLock<String> = LazyLock::new(policy);
    // The policy cannot name an IPv6 address, but it can name the page's own origin.
    let web_socket = match host.starts_with('[') {
        true => "'self'".to_owned(),
        false => format!("ws://{host}"),
    };
    let policy = format!(
        "{}; connect-src {web_socket}; frame-ancestors 'none'",
        *POLICY
    );
    let fixed = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    let mut headers: HeaderMap = fixed
        .into_iter()
        .map(|(name, value)| (name, HeaderValue::from_static(value)))
        .collect();
    headers.insert(CONTENT_SECURITY_POLICY, policy.parse().ok()?);
    Some(headers)
}
