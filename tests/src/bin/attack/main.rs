//! Attacks the example programs in the ways that machines and people disturb them: kills, signals, full disks, damaged files,
//! unusual command lines.
//!
//! Each part runs many cases; each case runs the programs in a separate folder and checks what they leave there. The program ends
//! with a table of what was tried and what was found, and with status 1 if anything was found. `cargo xtask attack` builds the
//! programs and starts it.

#![cfg_attr(not(unix), allow(dead_code, unused_imports, reason = "kills and signals are those of Unix"))]

mod attack;
mod case;
mod command_line;
#[path = "../../../../crates/table/tests/it/damage.rs"]
mod damage;
#[path = "../../../tests/it/event_files.rs"]
mod event_files;
mod files;
mod parts;
mod report;
mod run;
#[cfg(feature = "all-formats")]
#[path = "../../../../crates/table/tests/it/remote/server.rs"]
#[expect(dead_code, reason = "the tests of tables use the rest")]
mod server;
mod training;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use attack::Attack;
use command_line::Options;

/// Attacks the example programs and checks what they leave: kills, signals, full disks, damaged files, odd command lines
///
/// Prints a table of what was tried and found. The exit status is 1 if there was a loss, a panic, a hang or a wrong result.
#[derive(Debug, Parser)]
#[command(name = "attack")]
struct CommandLine {
    /// Folder of the programs to attack, the examples that `cargo xtask attack` builds
    #[arg(long, value_name = "DIR")]
    programs: PathBuf,
    /// The program `xtask`, whose downloads are attacked [default: xtask in the folder of the programs or its parent]
    #[arg(long, value_name = "FILE")]
    xtask: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

#[expect(clippy::print_stderr, reason = "an error goes to standard error")]
fn main() -> ExitCode {
    let ended = match std::env::args_os().collect::<Vec<_>>().as_slice() {
        // Started by the part `shard-kills`, not by people.
        [_, child, folder, round] if child == parts::shard_kills::CHILD => {
            parts::shard_kills::child(folder.as_ref(), round).map(|()| ExitCode::SUCCESS)
        }
        // Started by the part `cache-kills`.
        #[cfg(feature = "all-formats")]
        [_, child, url, cache, limit_bytes, version] if child == parts::cache_kills::CHILD => {
            let [url, limit_bytes, version] = [url, limit_bytes, version].map(|word| word.to_string_lossy());
            parts::cache_kills::child(&url, cache.as_ref(), &limit_bytes, &version).map(|()| ExitCode::SUCCESS)
        }
        // Started by the part `silent`.
        [_, child, folder] if child == parts::silent::killed_logs::CHILD => {
            parts::silent::killed_logs::child(folder.as_ref()).map(|()| ExitCode::SUCCESS)
        }
        _ => run(&CommandLine::parse()),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[expect(clippy::print_stdout, reason = "the table is its result")]
fn run(command_line: &CommandLine) -> Result<ExitCode> {
    let CommandLine { programs, xtask, options } = command_line;
    let report = Attack::new(options, programs, xtask.as_deref())?.run()?;
    print!("{report}");
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&report.json())? + "\n";
        std::fs::write(path, text).with_context(|| format!("{}: cannot write the report", path.display()))?;
    }
    Ok(if report.is_clean(options.require) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
