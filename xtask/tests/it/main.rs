//! `cargo xtask` as a program.

mod command_line;
#[cfg(target_os = "linux")]
mod packages;
