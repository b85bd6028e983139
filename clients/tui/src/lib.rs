//! `treelined-tui`: the conversations of AI agents as trees, in a terminal.
//!
//! The program keeps no data. All data comes from the daemon, its own or a shared one, through `treelined-client`.
//! Three parts are pure:
//!
//! - [`model`]: the state. [`Model::update`](model::Model::update) turns a [`message::Message`] into
//!   [`message::Effect`]s. No I/O, no clock, no terminal.
//! - [`view`]: draws the model on a frame.
//! - [`text`], [`marked`], [`markdown`], [`keys`], [`theme`], [`time`], [`shell`], [`operation`]: sanitized text, its marked
//!   parts, keys, colours, formatted times, commands for a shell, operations that end with a text.
//!
//! Around them, [`daemon`] runs effects and returns answers, [`terminal`] sets the terminal up and restores
//! it, [`app`] is the event loop, and [`args`] and [`config`] read what the user has configured. [`choice`] finds the
//! session that the command line names, and [`shell_error`] shows errors beside the screen.

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
