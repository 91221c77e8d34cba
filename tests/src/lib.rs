//! What the conformance runner, the benchmarks and the tests share.

mod higgs_table;

pub use higgs_table::{N_COLS, checksum, higgs_table};
