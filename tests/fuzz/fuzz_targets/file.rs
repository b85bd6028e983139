//! Fuzzes `targets::file`.

#![no_main]

#[allow(dead_code)]
#[path = "../targets.rs"]
mod targets;

thread_local! {
    static FOLDER: tempfile::TempDir = tempfile::tempdir_in("/dev/shm").expect("a temporary folder");
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| FOLDER.with(|folder| targets::file(bytes, folder.path())));
