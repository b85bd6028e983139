//! `treelined-tui`: the conversations of AI agents as trees, in a terminal.
//!
//! The program stores no data. All data come from a daemon, its own or a shared one, through `treelined-client`. These
//! modules are pure:
//!
//! - [`model`]: the state. [`Model::update`](model::Model::update) gets a [`message::Message`] and returns
//!   [`message::Effect`]s. No I/O, no clock, no terminal.
//! - [`view`]: draws the model on a frame.
//! - [`text`], [`marked`], [`markdown`], [`keys`], [`theme`], [`time`], [`shell`], [`operation`]: sanitized text, its marked
//!   parts, keys, colours, formatted times, commands for a shell, operations that end with a text.
//!
//! Other modules connect them to the world. [`daemon`] runs effects and returns answers, [`terminal`] sets up the
//! terminal and restores it, [`app`] is the event loop, and [`args`] and [`config`] read the user's options and
//! settings. [`choice`] finds the session that the command line names, and [`shell_error`] prints errors outside of the
//! screen.

pub mod app;
pub mod args;
pub mod choice;
pub mod config;
pub mod daemon;
pub mod keys;
pub mod markdown;
pub mod marked;
pub mod message;
pub mod model;
pub mod operation;
pub mod shell;
pub mod shell_error;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod time;
pub mod view;
