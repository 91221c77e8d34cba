//! A safetensors file of another program, listed tensor by tensor.

use std::fs::File;
use std::io::Read;

use anyhow::{Context, Result};
use brisk_examples::{print, write_json};
use brisk_table::format::{Layout, header_bytes};
use brisk_table::printable;
use serde_json::json;

use crate::options::Options;

pub(crate) fn show(options: &Options) -> Result<()> {
    let path = &options.table;
    let layout = layout(options).with_context(|| format!("{}: cannot read its header", printable(path)))?;
    let shown = printable(path);
    let mut lines = vec![format!("{shown}: a safetensors file, but not a table: a table has tensors `features` and `labels`")];
    for (key, value) in &layout.metadata {
        lines.push(format!("  {}: {}", printable(key), printable(value)));
    }
    let names: Vec<String> = layout.tensors.iter().map(|tensor| printable(&tensor.name).to_string()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (tensor, name) in layout.tensors.iter().zip(&names) {
        let n_bytes = tensor.range.len();
        lines.push(format!("{name:width$}  {} {:?}  {n_bytes} bytes", tensor.dtype, tensor.shape));
    }
    print::result(lines.join("\n"))?;
    if let Some(path) = &options.json {
        let tensors = layout.tensors.iter().map(|tensor| {
            json!({ "name": tensor.name, "dtype": tensor.dtype.name(), "shape": tensor.shape, "bytes": tensor.range.len() })
        });
        write_json(path, &json!({ "table": options.table.to_string_lossy(), "tensors": tensors.collect::<Vec<_>>() }))?;
    }
    Ok(())
}

fn layout(options: &Options) -> Result<Layout> {
    let mut file = File::open(&options.table)?;
    let n_bytes = file.metadata()?.len();
    let mut first_eight = [0; 8];
    file.read_exact(&mut first_eight)?;
    let mut header = vec![0; header_bytes(first_eight, n_bytes)?];
    file.read_exact(&mut header)?;
    Ok(Layout::parse(&header, n_bytes)?)
}
