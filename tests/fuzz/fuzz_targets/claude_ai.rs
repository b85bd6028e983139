//! Fuzzes `targets::import` with sources of claude-ai.

#![no_main]

#[allow(dead_code)]
#[path = "../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::import("claude-ai", bytes));
