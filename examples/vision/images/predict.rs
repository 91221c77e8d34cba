//! Predictions of a trained network, for images of unknown classes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use brisk_examples::higgs::stopped;
use brisk_examples::import_error::{import as words_of_import, in_words_of};
use brisk_examples::{check_model, print};
use brisk_loader::Rows;
use brisk_table::{BadRows, Channels, DecodedImage, ImagesOptions, Remedy, printable};
use brisk_train::StopFlag;
use brisk_vision_examples::images::Trained;

use crate::options::Options;

/// The number of images that are in memory at a time.
const CHUNK: usize = 1024;

/// Prints the class of the image at `path`, or of those in the folder.
pub(crate) fn run(options: &Options, path: &Path, stop: &StopFlag) -> Result<ExitCode> {
    options.server.apply([])?;
    check_model(&options.model)?;
    let files = images_at(path)?;
    let (trained, model) = Trained::load(&options.model)?;
    let device = options.device.builder().open()?;
    print::note(format_args!("device: {}", device.info()));
    let model = model.on(&device);
    let [height, width, n_channels] = trained.image;
    let channels = match n_channels {
        1 => Channels::Grey,
        3 => Channels::Rgb,
        4 => Channels::Rgba,
        _ => Channels::AsStored,
    };
    let decoding = ImagesOptions { size: Some([height, width]), channels, ..ImagesOptions::default() };

    print::result("file,class,probability")?;
    for files in files.chunks(CHUNK) {
        let (mut pixels, mut names) = (Vec::new(), Vec::new());
        for file in files {
            if stop.is_requested() {
                return Ok(stopped::status(stop, ExitCode::FAILURE));
            }
            match decoding.decode(file) {
                Ok(DecodedImage { shape, values }) => {
                    ensure!(
                        shape == trained.image,
                        "{}: found {} channels, expected {n_channels} as in training",
                        printable(file),
                        shape[2]
                    );
                    pixels.extend(values);
                    names.push(file);
                }
                Err(error) => {
                    let error = in_words_of(&error, remedy);
                    ensure!(options.bad_files == BadRows::Skip, "{error}");
                    print::note(format_args!("warning: left out: {error}"));
                }
            }
        }
        if names.is_empty() {
            continue;
        }
        let rows = Rows::new(pixels, vec![0.0; names.len()], height * width * n_channels)?;
        let logits = model.predict(&rows)?;
        for (logits, name) in logits.chunks_exact(trained.classes.len()).zip(names) {
            let (class, probability) = most_probable(logits);
            let [name, class] = [&name.to_string_lossy(), trained.classes[class].as_str()].map(quoted);
            print::result(format_args!("{name},{class},{probability:.4}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The class of the largest logit, and its probability.
fn most_probable(logits: &[f32]) -> (usize, f32) {
    let larger = |best: (usize, f32), next: (usize, f32)| if next.1 > best.1 { next } else { best };
    let (class, largest) = logits.iter().copied().enumerate().fold((0, f32::NEG_INFINITY), larger);
    (class, 1.0 / logits.iter().map(|logit| (logit - largest).exp()).sum::<f32>())
}

/// A cell of CSV.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// The file at a path, or the images in the folder there and in those below it, sorted. Hidden ones are left out.
fn images_at(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut images = Vec::new();
    add_images(path, &mut images)?;
    ensure!(!images.is_empty(), "{}: found no PNG or JPEG file", printable(path));
    Ok(images)
}

fn add_images(folder: &Path, images: &mut Vec<PathBuf>) -> Result<()> {
    let io = || format!("{}: cannot list the images", printable(folder));
    let entries = std::fs::read_dir(folder).with_context(io)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>().with_context(io)?;
    paths.sort_unstable();
    let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    for path in paths.into_iter().filter(|path| !is_hidden(path)) {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        if path.is_dir() && !path.is_symlink() {
            add_images(&path, images)?;
        } else if matches!(&*ending, "png" | "jpg" | "jpeg" | "jpe" | "jfif") {
            images.push(path);
        }
    }
    Ok(())
}

/// Remedies in terms of this program's options.
fn remedy(remedy: Remedy) -> Option<&'static str> {
    match remedy {
        Remedy::SkipRows => Some("pass `--on-bad-file skip`"),
        _ => words_of_import(remedy),
    }
}
