//! Compresses the documents of `schema/` that the program sends and writes. The folder `documents/` has links to these
//! documents, since the package of a crate has only files of its folder.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::env;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;

const DOCUMENTS: [&str; 5] = [
    "treelined.v1.json",
    "methods.json",
    "openrpc.json",
    "session-file.v3.json",
    "reference.md",
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var("OUT_DIR")?;
    for name in DOCUMENTS {
        let path = Path::new("documents").join(name);
        println!("cargo::rerun-if-changed={}", path.display());
        let document = fs::read_to_string(&path)?;
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(document.as_bytes())?;
        fs::write(Path::new(&out).join(name), encoder.finish()?)?;
        if name == "methods.json" {
            println!(
                "cargo::rustc-env=TREELINED_SCHEMA_HASH={}",
                hash(&document)?
            );
        }
    }
    Ok(())
}

/// The value of `schemaHash`.
fn hash(methods: &str) -> Result<&str, Box<dyn Error>> {
    let rest = methods.split_once("\"schemaHash\": \"");
    let hash = rest.and_then(|(_, rest)| rest.split_once('"'));
    Ok(hash.ok_or("schema/methods.json has no schemaHash")?.0)
}
