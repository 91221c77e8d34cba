//! The collision simulation of the HIGGS example, with its own tests: an example's are not run by `cargo test`.

#[path = "../higgs/simulate/mod.rs"]
mod simulate;
