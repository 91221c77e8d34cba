//! Tests of the crates composed.
