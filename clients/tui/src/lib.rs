//! `treelined-tui`: the conversations of AI agents as trees, in a terminal.
//!
//! Thin: everything it knows it asked the daemon, over stdio, through `treelined-client`. The heart is
//! pure, and there are three pure parts:
//!
//! - [`model`]: what is known, and [`Model::update`](model::Model::update): [`message::Message`] →
//!   [`message::Effect`]s. No I/O, no clock, no terminal.
//! - [`view`]: the model on a frame.
//! - [`text`], [`keys`], [`theme`], [`time`]: text made safe, what keys do, colours, how spans read.
//!
//! Around them: [`daemon`] carries effects out and brings answers back, [`terminal`] gives the terminal back
//! whatever happens, [`app`] is the loop between the two, [`args`] and [`config`] what the user says first.

pub mod app;
pub mod args;
pub mod config;
pub mod daemon;
pub mod keys;
pub mod message;
pub mod model;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod time;
pub mod view;
