//! `cargo xtask` as a person calls it.

#[cfg(target_os = "linux")]
mod mpi;
#[cfg(target_os = "linux")]
mod mpi_ranks;
