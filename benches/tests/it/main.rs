//! The benchmarks as programs: their suites, rows and errors.

mod cli;

#[path = "../../../tests/tests/it/gpu.rs"]
#[expect(dead_code, reason = "what these tests need of it is the adapter")]
mod gpu;
#[path = "../../../tests/tests/it/say.rs"]
mod say;
