//! Fuzzes `targets::import` with sources of copilot-cli.

#![no_main]

#[allow(dead_code)]
#[path = "../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::import("copilot-cli", bytes));
