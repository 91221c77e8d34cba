//! `cargo xtask` as a program.

mod command_line;
#[cfg(target_os = "linux")]
mod mpi;
#[cfg(target_os = "linux")]
mod mpi_ranks;
#[cfg(target_os = "linux")]
mod packages;
#[cfg(target_os = "linux")]
#[path = "../../../crates/replicate/tests/it/mpi/two_hosts.rs"]
mod two_hosts;
