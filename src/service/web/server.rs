//! Accepts connections, and answers their requests. `GET /` returns the page, and `GET /ws` opens a WebSocket.

use super::address::{WebAddress, WebListener};
use super::bridge::{self, Admission, WebBackend};
use super::document;
use super::first_message::{self, HANDSHAKE, shown_token};
use super::gate::Gate;
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::any;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::server::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// The bytes of the longest head of a request.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// The most clients that have shown the token, at a time.
const MAX_CLIENTS: usize = 64;
/// The most connections that have not shown the token, at a time.
const MAX_GUESTS: usize = 512;
/// The longest time from the beginning of a connection to the end of its response.
const LONGEST_REQUEST: Duration = Duration::from_secs(15);
/// The bytes of the key of a WebSocket.
const KEY_BYTES: usize = 16;
/// The pause after a failed accept, for example without free descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the daemon waits at its end until its clients have been informed.
const LONGEST_FAREWELL: Duration = Duration::from_secs(1);

/// A port that serves the page and the WebSocket.
pub(crate) struct WebServer {
    address: WebAddress,
    accept: JoinHandle<()>,
    clients: Arc<Semaphore>,
}

impl WebServer {
    /// Serves this port until [`WebServer::stop`].
    pub(crate) fn start(
        listener: WebListener,
        runtime: &Handle,
        backend: Arc<dyn WebBackend>,
    ) -> io::Result<Self> {
        let WebListener { listener, address } = listener;
        listener.set_nonblocking(true)?;
        let _entered = runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        let clients = Arc::new(Semaphore::new(MAX_CLIENTS));
        let site = Site {
            gate: Gate::new(address.bound()),
            address: address.clone(),
            clients: Arc::clone(&clients),
            backend,
        };
        let accept = runtime.spawn(accept(listener, Arc::new(site)));
        Ok(Self {
            address,
            accept,
            clients,
        })
    }

    pub(crate) fn address(&self) -> &WebAddress {
        &self.address
    }

    /// Frees the port. The clients stay connected.
    pub(crate) fn stop(&self) {
        self.accept.abort();
    }

    /// Waits until the clients have been informed that the daemon has ended their connections.
    pub(crate) async fn ended(&self) {
        let all = u32::try_from(MAX_CLIENTS).unwrap_or(u32::MAX);
        let _late = timeout(LONGEST_FAREWELL, self.clients.acquire_many(all)).await;
    }
}

/// The parts that all requests share.
struct Site {
    gate: Gate,
    address: WebAddress,
    clients: Arc<Semaphore>,
    backend: Arc<dyn WebBackend>,
}

/// Receives the connection of a request that has opened a WebSocket.
#[derive(Clone)]
struct Upgrades(mpsc::Sender<OnUpgrade>);

/// The value of the header `Host`. It is an address of this server.
#[derive(Clone)]
struct Host(String);

async fn accept(listener: TcpListener, site: Arc<Site>) {
    // The connections that have not shown the token, oldest first.
    let mut guests: VecDeque<AbortHandle> = VecDeque::new();
    let router = Router::new()
        .route("/", any(page))
        .route("/ws", any(web_socket))
        .fallback(async || refusal(StatusCode::NOT_FOUND))
        .layer(middleware::from_fn_with_state(Arc::clone(&site), check))
        .with_state(Arc::clone(&site));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                guests.retain(|guest| !guest.is_finished());
                if guests.len() >= MAX_GUESTS
                    && let Some(oldest) = guests.pop_front()
                {
                    oldest.abort();
                    site.backend.refused(&format!(
                        "more than {MAX_GUESTS} connections without a token: the oldest was closed"
                    ));
                }
                let guest = tokio::spawn(serve(stream, router.clone(), Arc::clone(&site)));
                guests.push_back(guest.abort_handle());
            }
            Err(error) => {
                let why = format!("no connection to the page could be accepted: {error}");
                site.backend.refused(&why);
                sleep(PAUSE).await;
            }
        }
    }
}

/// Answers one request. If the request opens a WebSocket, admits a client that shows the token.
async fn serve(stream: TcpStream, router: Router, site: Arc<Site>) {
    let (upgrades, mut upgraded) = mpsc::channel(1);
    let router = router.layer(Extension(Upgrades(upgrades)));
    // A failure costs only speed.
    let _slower = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades();
    // The time is limited, since the client may be gone or slow.
    let _ended = timeout(LONGEST_REQUEST, connection).await;
    if let Ok(upgrade) = upgraded.try_recv() {
        admit(upgrade, site).await;
    }
}

/// A response without a body.
fn refusal(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Accepts a request if it comes from this server's own page or from no page. A connection has one request.
async fn check(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    let host = site.gate.passed(request.uri(), request.headers());
    let mut response = match host.map(|host| Host(host.to_owned())) {
        Some(_) if request.method() != Method::GET => refusal(StatusCode::NOT_FOUND),
        Some(host) => {
            request.extensions_mut().insert(host);
            next.run(request).await
        }
        None => {
            site.backend
                .refused("a request of another site was refused");
            refusal(StatusCode::FORBIDDEN)
        }
    };
    let close = HeaderValue::from_static("close");
    response.headers_mut().entry(CONNECTION).or_insert(close);
    response
}

async fn page(Extension(Host(host)): Extension<Host>, headers: HeaderMap) -> Response {
    // A client that asks for a WebSocket here must not get the page. The WebSocket has another path.
    if headers.contains_key(UPGRADE) {
        return refusal(StatusCode::BAD_REQUEST);
    }
    let mut response = Response::new(Body::from(document::text()));
    match document::headers(&host) {
        Some(headers) => *response.headers_mut() = headers,
        None => return refusal(StatusCode::FORBIDDEN),
    }
    response
}

async fn web_socket(
    Extension(Upgrades(upgrades)): Extension<Upgrades>,
    mut request: Request,
) -> Response {
    let upgrade = request.extensions_mut().remove::<OnUpgrade>();
    let Some(upgrade) = upgrade.filter(|_| is_upgrade(request.headers())) else {
        return refusal(StatusCode::NOT_FOUND);
    };
    let Some(key) = accepted_key(request.headers()) else {
        return refusal(StatusCode::BAD_REQUEST);
    };
    let mut response = refusal(StatusCode::SWITCHING_PROTOCOLS);
    let headers = [
        (CONNECTION, HeaderValue::from_static("upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, key),
    ];
    response.headers_mut().extend(headers);
    // The channel has room, since the connection has one request.
    let _taken = upgrades.try_send(upgrade);
    response
}

/// Whether a request opens a WebSocket.
fn is_upgrade(headers: &HeaderMap) -> bool {
    let has = |name: HeaderName, wanted: &str| {
        let values = headers.get_all(name).into_iter();
        let mut words = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        words.any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    has(CONNECTION, "upgrade")
        && has(UPGRADE, "websocket")
        && has(SEC_WEBSOCKET_VERSION, "13")
        && headers.contains_key(SEC_WEBSOCKET_KEY)
}

/// The value of `Sec-WebSocket-Accept`. `None` if the key is not 16 bytes in base64, as RFC 6455 requires.
fn accepted_key(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut keys = headers.get_all(SEC_WEBSOCKET_KEY).into_iter();
    let key = keys.next().filter(|_| keys.next().is_none())?;
    let bytes = STANDARD.decode(key.as_bytes()).ok()?;
    let accept = derive_accept_key(key.as_bytes());
    accept.try_into().ok().filter(|_| bytes.len() == KEY_BYTES)
}

/// Serves a WebSocket if its client shows the token.
async fn admit(upgrade: OnUpgrade, site: Arc<Site>) {
    let Ok(Ok(stream)) = timeout(HANDSHAKE, upgrade).await else {
        return;
    };
    let mut stream = TokioIo::new(stream);
    let shown = shown_token(&mut stream).await;
    let admission = shown.and_then(|shown| match site.address.token.is(&shown) {
        true => Some(Admission::Page),
        false => site.backend.admits(&shown),
    });
    let Some(admission) = admission else {
        site.backend
            .refused("a client without the token was refused");
        first_message::close(&mut stream, CloseCode::Policy).await;
        return;
    };
    let Ok(place) = Arc::clone(&site.clients).try_acquire_owned() else {
        let why = format!("more than {MAX_CLIENTS} clients of the page: one was closed");
        site.backend.refused(&why);
        first_message::close(&mut stream, CloseCode::Again).await;
        return;
    };
    // This task is separate, since the task of a connection without a token is closed for newer connections.
    tokio::spawn(async move {
        let _place = place;
        bridge::run(stream, &admission, &*site.backend).await;
    });
}
