//! Each feature as the screen it draws: messages drive the pure part of the program, and ratatui's test
//! backend shows the result. The screens are in `expected/`; `UPDATE_SCREENS=1` writes them.
#![cfg(test)]

mod branches;
mod commands;
mod compare;
mod dialogs;
mod drawn;
mod editor;
mod handoff;
mod harness;
mod hostile;
mod keys;
mod large;
mod live;
mod people;
mod preview;
mod readme;
mod search;
mod sessions;
mod sorting;
mod styles;
mod tree;
