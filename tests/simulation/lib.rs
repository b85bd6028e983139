//! Histories of several writers of session files, on a simulated machine (README.md).
#![cfg(feature = "simulation")]

pub mod book;
pub mod history;
pub mod story;
mod verify;
pub mod writer;
