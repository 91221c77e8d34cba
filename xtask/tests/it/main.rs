//! `cargo xtask` as a person calls it.

#[cfg(target_os = "linux")]
mod mpi;
#[cfg(target_os = "linux")]
mod mpi_ranks;
#[cfg(target_os = "linux")]
#[path = "../../../crates/replicate/tests/it/mpi/two_hosts.rs"]
mod two_hosts;
