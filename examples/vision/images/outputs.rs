use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use brisk_examples::elsewhere::is_url;
use brisk_examples::{NamedFile, check_files_differ, check_folder, check_output, check_outside};
use brisk_nn::Parameters;
use brisk_table::printable;
use brisk_train::Scores;
use brisk_vision_examples::images::{KEPT_TABLES, check_kept};

use crate::options::{self, Options};

/// Checks the output paths before anything is read.
pub(crate) fn check(options: &Options, data: &Path) -> Result<()> {
    options.server.apply([data])?;
    ensure!(is_url(data) || data.exists(), "{}: cannot open the images: there is no such file or folder", printable(data));
    if options.model == Path::new(options::MODEL) {
        let folder = options.model.parent().context("the default has a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create the folder", printable(folder)))?;
    }
    let data = ("--data", data);
    let files = [("--model", Some(&options.model)), ("--report", options.report.as_ref()), ("--json", options.json.as_ref())];
    let files: Vec<NamedFile<'_>> = files.iter().filter_map(|(option, path)| Some((*option, path.as_ref()?.as_path()))).collect();
    let tables = options.save_tables.as_deref().map(|folder| ("--save-tables", folder));
    check_outside(&Vec::from_iter(files.iter().copied().chain(tables)), data)?;
    let kept: Vec<PathBuf> = tables.iter().flat_map(|(_, folder)| KEPT_TABLES.map(|name| folder.join(name))).collect();
    let kept = kept.iter().map(|path| ("--save-tables", path.as_path()));
    check_files_differ(&files, &Vec::from_iter(kept.chain([data])))?;
    files.iter().try_for_each(|(option, path)| check_output(option, path))?;
    let Some((option, folder)) = tables else { return Ok(()) };
    check_folder(option, folder)?;
    check_kept(folder)
}

/// Checks that a trained network is of use.
///
/// # Errors
/// If its parameters or its loss are not finite.
pub(crate) fn check_finite(params: &Parameters, valid: &Scores) -> Result<()> {
    let loss = valid.get("loss").unwrap_or(f64::NAN);
    let n_bad = params.newest()?.iter().filter(|value| !value.is_finite()).count();
    ensure!(
        n_bad == 0 && loss.is_finite(),
        "the training diverged: {n_bad} parameters are not finite, and the validation loss is {loss}; no model was written: try another --recipe, or a larger --batch"
    );
    Ok(())
}
