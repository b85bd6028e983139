//! Small rollouts, written for one rule each.
