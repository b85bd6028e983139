//! The documents that describe the protocol and the file format. A test makes the documents from the `wire` types and
//! the table of methods. The test compares the documents with the files of `schema/`, or writes these files (`cargo
//! xtask generate`). The program has the files, compressed.

#[cfg(test)]
mod generators;
#[cfg(test)]
mod made;
#[cfg(test)]
mod methods;
#[cfg(test)]
mod openrpc;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tidy;

use flate2::read::DeflateDecoder;
use serde_json::Value;
use std::io::Read;

/// The version of the protocol.
pub const PROTOCOL_VERSION: u32 = 1;

/// `sha256:` and the hash of `schema/treelined.v1.json` in hex.
pub const SCHEMA_HASH: &str = env!("TREELINED_SCHEMA_HASH");

macro_rules! compressed {
    ($name:literal) => {
        ($name, include_bytes!(concat!(env!("OUT_DIR"), "/", $name)))
    };
}

const OPENRPC: (&str, &[u8]) = compressed!("openrpc.json");

/// The files of `schema/` as the build compresses them.
const COMPRESSED: [(&str, &[u8]); 5] = [
    compressed!("treelined.v1.json"),
    compressed!("methods.json"),
    OPENRPC,
    compressed!("session-file.v3.json"),
    compressed!("reference.md"),
];

/// The files of `schema/`, each with its name and text.
pub fn documents() -> impl Iterator<Item = (&'static str, String)> {
    COMPRESSED.iter().map(|(name, bytes)| (*name, text(bytes)))
}

/// The OpenRPC document of this daemon, `schema/openrpc.json`, without white space.
pub fn openrpc() -> String {
    let (_, bytes) = OPENRPC;
    let document: Value = serde_json::from_str(&text(bytes)).unwrap_or_default();
    document.to_string()
}

fn text(compressed: &[u8]) -> String {
    let mut text = String::new();
    // The build made the bytes, so they are whole.
    let _whole = DeflateDecoder::new(compressed).read_to_string(&mut text);
    text
}
