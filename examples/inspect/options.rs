use std::path::PathBuf;

use brisk_examples::command_line::ServerOption;
use brisk_examples::command_line::value::whole;
use clap::Parser;

/// Shows what a table contains, reading only its header and the rows that are shown
#[derive(Debug, Parser)]
#[command(name = "inspect", after_help = NOTES)]
pub(crate) struct Options {
    /// A table: a safetensors file, a folder of shards, the index of the shards, or the URL of one of them
    #[arg(value_name = "TABLE")]
    pub(crate) table: PathBuf,
    /// Number of rows to show, from the first
    #[arg(long = "rows", value_name = "N", help_heading = "Contents", default_value = "5", allow_negative_numbers = true,
        value_parser = whole::<usize>(0..=100_000))]
    pub(crate) n_rows: usize,
    /// Check every byte against the checksums of the table
    #[arg(long, help_heading = "Contents")]
    pub(crate) verify: bool,
    /// Write the description of the table to FILE as one JSON object
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerOption,
}

const NOTES: &str = "\
Of a safetensors file that is no table, the tensors are listed.

Examples:
  cargo run --release --example inspect -- TABLE
  cargo run --release --example inspect -- TABLE --rows 20 --verify
  cargo run --release --features remote --example inspect -- s3://BUCKET/TABLE.safetensors";
