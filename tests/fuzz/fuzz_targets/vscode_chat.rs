//! Fuzzes `targets::import` with sources of vscode-chat.

#![no_main]

#[allow(dead_code)]
#[path = "../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::import("vscode-chat", bytes));
