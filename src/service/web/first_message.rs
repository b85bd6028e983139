//! The first message of a WebSocket, `{"token": "…"}`. It is read before any parser of WebSockets or of the protocol
//! runs.
//!
//! A library for WebSockets reserves as much memory as a frame announces. This code gives a client without a token at
//! most [`MAX_BYTES`].

use serde::Deserialize;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// How long a client may take for the headers of a request, and then for its first message.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(5);
/// The bytes of the longest first message.
const MAX_BYTES: u16 = 4096;
/// The first byte of a text frame that is not fragmented.
const WHOLE_TEXT: u8 = 0x81;
/// The first byte of a close frame.
const CLOSE: u8 = 0x88;
/// The bit in the second byte that says that the payload is masked. All frames of clients have it.
const MASKED: u8 = 0x80;
/// The length in the second byte which says that the next two bytes have the length.
const LENGTH_IN_TWO_BYTES: u8 = 126;
/// The most bytes that are still read from a refused client. If a connection is closed with unread bytes, it is reset,
/// and the client does not get the refusal.
const LEFT_OVER: u64 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstMessage {
    token: String,
}

/// The token that the client shows in time.
pub(super) async fn shown_token(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let message = timeout(HANDSHAKE, read(stream)).await;
    let message = message.ok().flatten();
    // Serde would also read a struct from an array.
    let object = message.filter(|text| text.trim_ascii_start().starts_with(b"{"));
    let first = object.and_then(|text| serde_json::from_slice::<FirstMessage>(&text).ok());
    first.map(|first| first.token)
}

/// Refuses a client with this close code and without a reason.
pub(super) async fn close(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), code: CloseCode) {
    let [high, low] = u16::from(code).to_be_bytes();
    let refused = async {
        stream.write_all(&[CLOSE, 2, high, low]).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(LEFT_OVER), &mut tokio::io::sink()).await
    };
    // The time is limited, since the client may be gone or may not stop sending.
    let _gone = timeout(HANDSHAKE, refused).await;
}

/// The payload of the first frame. `None` unless the frame is a short text frame that is whole and masked.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    if stream.read_u8().await.ok()? != WHOLE_TEXT {
        return None;
    }
    let length = stream.read_u8().await.ok()?.checked_sub(MASKED)?;
    let length = match length {
        LENGTH_IN_TWO_BYTES => stream.read_u16().await.ok()?,
        short if short < LENGTH_IN_TWO_BYTES => u16::from(short),
        _ => return None,
    };
    if length > MAX_BYTES {
        return None;
    }
    let mut mask = [0; 4];
    stream.read_exact(&mut mask).await.ok()?;
    let mut text = vec![0; usize::from(length)];
    stream.read_exact(&mut text).await.ok()?;
    for (byte, mask) in text.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::token::Token;

    fn shows(token: &Token, bytes: &[u8]) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().unwrap();
        let shown = runtime.block_on(shown_token(&mut &*bytes));
        shown.is_some_and(|shown| token.is(&shown))
    }

    /// A frame of a client, with a mask of zeros.
    fn frame(head: u8, text: &str) -> Vec<u8> {
        let mut frame = vec![head];
        match u8::try_from(text.len()) {
            Ok(short @ 0..126) => frame.push(MASKED | short),
            _ => {
                frame.push(MASKED | LENGTH_IN_TWO_BYTES);
                frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        frame
    }

    #[test]
    fn only_a_short_whole_masked_text_with_the_token_is_accepted() {
        let token = Token::random().unwrap();
        let text = |token: &str| format!("{{\"token\":\"{token}\"}}");
        let right = text(token.expose());
        assert!(shows(&token, &frame(WHOLE_TEXT, &right)));
        let padded = |length: usize| format!("{right}{}", " ".repeat(length - right.len()));
        assert!(shows(&token, &frame(WHOLE_TEXT, &padded(4096))));
        assert!(!shows(&token, &frame(WHOLE_TEXT, &padded(4097))));
        for wrong in [
            "",
            "{}",
            "null",
            "[]",
            "\"\"",
            token.expose(),
            &text(""),
            &text(&token.expose()[1..]),
            &format!("{right}{right}"),
            &right.replace('}', ",\"id\":1}"),
            &right.replace("token", "Token"),
            &format!("[{right}]"),
            &format!("[\"{}\"]", token.expose()),
            &format!(" [\"{}\"]", token.expose()),
            &"[".repeat(4000),
        ] {
            assert!(!shows(&token, &frame(WHOLE_TEXT, wrong)), "{wrong}");
        }
        // A fragment, a binary frame, a ping, a close, and a reserved bit are refused.
        for head in [0x01, 0x82, 0x89, 0x88, 0xc1] {
            assert!(!shows(&token, &frame(head, &right)), "{head}");
        }
        let mut unmasked = frame(WHOLE_TEXT, &right);
        unmasked[1] &= !MASKED;
        assert!(!shows(&token, &unmasked));
        let whole = frame(WHOLE_TEXT, &right);
        for length in 0..whole.len() {
            assert!(!shows(&token, &whole[..length]), "{length} bytes");
        }
        let mut long = vec![WHOLE_TEXT, MASKED | 127];
        long.extend([0xff; 60]);
        assert!(!shows(&token, &long));
    }
}
