//! Every feature as the screen it makes: the pure part of the program, driven by messages, drawn on
//! ratatui's test backend. The screens are in `expected/`; `UPDATE_SCREENS=1` writes them anew.
#![cfg(test)]

mod compare;
mod dialogs;
mod editor;
mod harness;
mod hostile;
mod large;
mod live;
mod preview;
mod readme;
mod sessions;
mod styles;
mod tree;
