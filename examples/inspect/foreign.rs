//! A safetensors file of another program, listed tensor by tensor.

use std::fs::File;
use std::io::Read;

use anyhow::{Context, Result, bail};
use brisk_examples::command_line::Given;
use brisk_examples::{print, write_json};
use brisk_table::format::{Layout, header_bytes};
use brisk_table::{Error, printable};
use serde_json::json;

use crate::options::Options;

/// The metadata that identifies a table, even if one of its tensors has lost its name.
const TABLE: &str = "brisk_table";

/// Lists the file's tensors. `error` says why it is not a table.
pub(crate) fn show(options: &Options, given: &[Given], error: Error) -> Result<()> {
    let path = &options.table;
    let shown = printable(path);
    let layout = layout(options).with_context(|| format!("{shown}: cannot read its header"))?;
    if layout.metadata.iter().any(|(key, _)| key == TABLE) {
        return Err(anyhow::Error::new(error).context(format!("{shown}: a damaged table")));
    }
    if options.verify {
        bail!("{shown}: not a table, and without checksums, so that there is nothing to verify");
    }
    if given.iter().any(|option| option == "rows") {
        bail!("{shown}: not a table, so that it has no rows to show; leave out `--rows`");
    }
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
