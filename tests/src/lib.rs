//! What the conformance runner, the benchmarks and the tests share.
