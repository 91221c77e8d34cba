//! The example `images`, called as from a shell: folders of classes, the files of MNIST, and images that cannot be used.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use brisk_table::{Channels, ImagesOptions, Table, import};
use brisk_train::{Checkpoint, TensorData};
use image::{ColorType, ImageFormat};

use crate::place::Place;
use crate::run::noise;
use crate::say::say;
#[cfg(feature = "all-formats")]
use crate::server::Server;
use crate::usage::check_usage_error;

/// Writes an image of one colour with noise, in the format that its name ends in.
fn image(place: &Place, name: &str, [height, width]: [u32; 2], colour: &[u8]) {
    let path = place.path(name);
    fs::create_dir_all(path.parent().expect("images are in folders")).expect("it can be created");
    let row = name.bytes().fold(0_usize, |hash, byte| (31 * hash + usize::from(byte)) % 65_521);
    let pixels = (height * width) as usize * colour.len();
    let noisy = |i: usize| match colour[i % colour.len()] {
        u8::MAX => u8::MAX,
        value => value + (40.0 * (noise(row, i) + 1.0)) as u8,
    };
    let pixels: Vec<u8> = (0..pixels).map(noisy).collect();
    let colour = match colour.len() {
        1 => ColorType::L8,
        4 => ColorType::Rgba8,
        _ => ColorType::Rgb8,
    };
    let format = if name.ends_with("png") { ImageFormat::Png } else { ImageFormat::Jpeg };
    image::save_buffer_with_format(path, &pixels, width, height, colour, format).expect("it can be written");
}

/// Forty images of 12 x 10 pixels in each of two classes, which colour tells apart.
fn fruit(place: &Place, folder: &str) {
    for i in 0..40 {
        let ending = ["png", "jpg"][i % 2];
        image(place, &format!("{folder}/lemon/{i}.{ending}"), [12, 10], &[150, 150, 20]);
        image(place, &format!("{folder}/plum/{i}.{ending}"), [12, 10], &[100, 20, 120]);
    }
}

/// Refused by one last line that says all of `words`; neither model nor report nor tables are written.
#[track_caller]
fn refuse(place: &Place, args: &[&str], words: &[&str]) {
    place.refuse(
        "images",
        &[args, &["--model", "m.safetensors", "--report", "r.html", "--save-tables", "tables"]].concat(),
        words,
    );
    for file in ["m.safetensors", "r.html"] {
        assert!(!place.path(file).exists(), "{args:?}: {file} has been written");
    }
    // Tables are written before training starts, but only as a whole.
    let tables: Vec<PathBuf> = files_in(&place.path("tables"));
    tables.iter().for_each(|path| drop(Table::open(path).expect("a table")));
    fs::remove_dir_all(place.path("tables")).ok();
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// The number that follows `word`.
#[track_caller]
fn number_after(printed: &str, word: &str) -> f64 {
    let (_, rest) = printed.split_once(word).unwrap_or_else(|| panic!("no `{word}` in {printed}"));
    rest.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no number in {printed}"))
}

#[test]
fn a_folder_of_classes_is_learned() {
    let place = Place::new();
    fruit(&place, "fruit");
    let args = ["--data", "fruit", "--batch", "32", "--epochs", "4", "--report", "r.html", "--save-tables", "tables"];
    let printed = place.succeed("images", &args);
    assert_eq!(number_after(&printed, "accuracy"), 100.0, "{printed}");
    assert_eq!(number_after(&printed, "with views"), 100.0, "{printed}");
    let report = fs::read_to_string(place.path("r.html")).expect("the report");
    assert!(report.contains("<svg"), "it has curves");
    assert!(report.contains("muon, narrow") && report.contains("Muon for the filters"), "it names the recipe and its optimizer");
    assert!(!report.contains("scaler"), "the loss is not scaled in f32");
    let table = Table::open(place.path("tables/train.safetensors")).expect("the table");
    assert_eq!((table.n_rows(), table.row_shape(), table.classes().len()), (80, [12, 10, 3].as_slice(), 2));
    assert_eq!(files_in(&place.path("tables")).len(), 1, "nothing else is left there");
    // The table is the same images, in the same order.
    let model = place.path("target/images/model.safetensors");
    let first = fs::read(&model).expect("the model");
    place.succeed("images", &["--data", "tables", "--batch", "32", "--epochs", "4"]);
    assert!(first == fs::read(&model).expect("the model"), "the model of the same images has other bytes");
    #[cfg(feature = "all-formats")]
    {
        let server = Server::start();
        server.put("/train.safetensors", fs::read(place.path("tables/train.safetensors")).expect("the table"));
        place.succeed("images", &["--data", &server.url("/train.safetensors"), "--batch", "32", "--epochs", "4"]);
        assert!(first == fs::read(&model).expect("the model"), "the model of the images on a server has other bytes");
    }
}

/// The pictures have a column for each of twelve images of 12 x 10 pixels, enlarged seven times.
#[test]
fn a_gallery_of_augmented_images_and_wrong_predictions() {
    let place = Place::new();
    fruit(&place, "fruit/train");
    // Lemons in the folder of the plums: the model predicts another class than theirs.
    for i in 0..5 {
        image(&place, &format!("fruit/val/lemon/{i}.png"), [12, 10], &[150, 150, 20]);
        image(&place, &format!("fruit/val/plum/{i}.png"), [12, 10], &[150, 150, 20]);
    }
    let args = ["--data", "fruit", "--batch", "32", "--epochs", "4", "--model", "m.safetensors", "--report", "r.html"];
    place.succeed("images", &args);
    let report = fs::read_to_string(place.path("r.html")).expect("the report");
    assert_eq!(report.matches("<figcaption>lemon<small>").count(), 5, "five plums are predicted as lemons");
    assert_eq!(report.matches(" %, labelled plum</small>").count(), 5, "the report names their class");
    let (output, stderr) = place.run("augment_gallery", &["--data", "fruit", "--model", "m.safetensors", "--out", "pictures"]);
    assert!(output.status.success(), "{stderr}");
    for (name, height) in [("augmented", 10 * (86 + 20) + 2), ("epochs", 8 * 86 + 2), ("wrong", 86 + 2)] {
        let picture = image::open(place.path(format!("pictures/{name}.png"))).expect("a picture");
        assert_eq!(picture.height(), height, "{name}: rows of 12 pixels, enlarged seven times, with gaps and captions");
        assert!(picture.to_rgb8().pixels().any(|pixel| pixel.0 != picture.to_rgb8().get_pixel(0, 0).0), "{name} is empty");
    }
    let list = fs::read_to_string(place.path("pictures/wrong.txt")).expect("the list");
    assert!(list.lines().skip(1).all(|line| line.contains(" lemon ") && line.ends_with(" plum")), "{list}");
    assert_eq!(list.lines().count(), 6, "{list}");

    // A model without errors.
    fs::remove_dir_all(place.path("fruit/val/plum")).expect("it can be removed");
    fs::create_dir(place.path("fruit/val/plum")).expect("it can be created");
    let (output, stderr) = place.run("augment_gallery", &["--data", "fruit", "--model", "m.safetensors", "--out", "right"]);
    assert!(output.status.success() && !place.path("right/wrong.png").exists(), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("0 of 5 predictions are wrong"), "{output:?}");

    // Of other classes.
    fs::rename(place.path("fruit/train"), place.path("vegetables")).expect("it can be renamed");
    fs::rename(place.path("vegetables/plum"), place.path("vegetables/beet")).expect("it can be renamed");
    let args = ["--data", "vegetables", "--model", "m.safetensors", "--out", "other"];
    let (output, stderr) = place.run("augment_gallery", &args);
    assert!(output.status.code() == Some(1) && stderr.contains("class 0 is `beet`, expected `lemon`"), "{stderr}");
    fs::rename(place.path("vegetables/beet"), place.path("vegetables/plum")).expect("it can be renamed");
    fs::rename(place.path("vegetables"), place.path("fruit/train")).expect("it can be renamed");

    // Of another network, or without one.
    let args = ["--data", "fruit", "--model", "m.safetensors", "--recipe", "page", "--out", "other"];
    let (output, stderr) = place.run("augment_gallery", &args);
    assert!(output.status.code() == Some(1) && stderr.contains("was it written for another model"), "{stderr}");
    let (output, _) = place.run("augment_gallery", &["--model", "m.safetensors"]);
    check_usage_error(&output, &["--model"], &["--data"]);
    let (output, stderr) = place.run("augment_gallery", &["--out", "letters"]);
    assert!(output.status.success() && place.path("letters/whitening.png").is_file(), "{stderr}");
}

/// Five images of each class; those in the folder of the plums have the colour of a lemon if `is_wrong`.
fn more_fruit(place: &Place, folder: &str, is_wrong: bool) {
    for i in 0..5 {
        image(place, &format!("{folder}/lemon/{i}.png"), [12, 10], &[150, 150, 20]);
        let plum = if is_wrong { [150, 150, 20] } else { [100, 20, 120] };
        image(place, &format!("{folder}/plum/{i}.png"), [12, 10], &plum);
    }
}

#[test]
fn validation_images_choose_the_epoch_and_test_images_score_it_once() {
    let place = Place::new();
    fruit(&place, "fruit/train");
    more_fruit(&place, "fruit/val", false);
    more_fruit(&place, "fruit/test", true);
    let args = ["--data", "fruit", "--batch", "32", "--epochs", "4", "--json", "r.json"];
    let run = || {
        let (output, stderr) = place.run("images", &args);
        assert!(output.status.success(), "{stderr}");
        let results = place.json("r.json");
        assert_eq!((&results["valid_accuracy"], &results["test_accuracy"]), (&1.0.into(), &0.5.into()), "{results}");
        assert!(results["valid_accuracy_with_views"].is_null(), "{results}");
        assert_eq!(results["test_accuracy_with_views"], 0.5, "{results}");
        (String::from_utf8_lossy(&output.stdout).into_owned(), stderr)
    };
    let (printed, stderr) = run();
    assert_eq!(number_after(&printed, "validation accuracy"), 100.0, "{printed}");
    assert_eq!(number_after(&printed, "test accuracy"), 50.0, "{printed}");
    assert!(stderr.contains("80 to train on, 10 to validate with, 10 to test with"), "{stderr}");
    fs::remove_dir_all(place.path("fruit/val")).expect("it can be removed");
    let (_, stderr) = run();
    assert!(stderr.contains("72 to train on, 8 held out for validation, 10 to test with"), "{stderr}");
}

#[test]
fn classes_that_are_not_in_all_sets_are_named() {
    let place = Place::new();
    fruit(&place, "fruit/train");
    more_fruit(&place, "fruit/test", false);
    (0..3).for_each(|i| image(&place, &format!("fruit/train/kiwi/{i}.png"), [12, 10], &[20, 170, 20]));
    fs::remove_dir_all(place.path("fruit/test/lemon")).expect("it can be removed");
    let (output, stderr) = place.run("images", &["--data", "fruit", "--epochs", "1", "--save-tables", "kept"]);
    assert!(output.status.success(), "{stderr}");
    let line = |word: &str| stderr.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("no `{word}` in {stderr}"));
    assert!(line("to validate with").ends_with(": `kiwi`"), "{stderr}");
    assert!(line("to test with,").ends_with(": `kiwi`, `lemon`"), "{stderr}");
    // The only class in the test set has its number in the training set.
    let kept = Table::open(place.path("kept/test.safetensors")).expect("the table");
    assert_eq!((kept.classes().len(), kept.labels::<u32>().expect("labels")), (3, &[2; 5][..]), "{stderr}");
    for i in 0..3 {
        fs::remove_file(place.path(format!("fruit/train/kiwi/{i}.png"))).expect("it can be removed");
    }
    image(&place, "fruit/test/kiwi/0.png", [12, 10], &[20, 170, 20]);
    let (output, stderr) = place.run("images", &["--data", "fruit", "--epochs", "1"]);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("classes without an image to train on, which are always predicted wrongly: `kiwi`"), "{stderr}");
}

#[test]
fn a_constant_channel_is_named_and_harmless() {
    let place = Place::new();
    for i in 0..40 {
        image(&place, &format!("opaque/lemon/{i}.png"), [12, 10], &[150, 150, 20, 255]);
        image(&place, &format!("opaque/plum/{i}.png"), [12, 10], &[100, 20, 120, 255]);
    }
    for recipe in ["muon", "airbench"] {
        let args = ["--data", "opaque", "--batch", "32", "--epochs", "6", "--recipe", recipe];
        let (output, stderr) = place.run("images", &args);
        assert!(output.status.success(), "{recipe}: {stderr}");
        assert!(stderr.contains("warning: channel 3 of 4 is 255 in all pixels"), "{stderr}");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(number_after(&printed, "accuracy"), 100.0, "{recipe}: {printed}");
    }
    let file = Checkpoint::load(place.path("target/images/model.safetensors")).expect("a model");
    for (name, _, values) in file.tensors() {
        let TensorData::F32(values) = values else { continue };
        assert!(values.iter().all(|value| value.abs() < 1e4), "{name} is large: {values:?}");
    }
}

#[test]
fn predictions_of_a_saved_model() {
    let place = Place::new();
    fruit(&place, "fruit");
    place.succeed("images", &["--data", "fruit", "--batch", "32", "--epochs", "4", "--model", "m.safetensors"]);
    image(&place, "new/a,b.png", [24, 20], &[150, 150, 20]);
    image(&place, "new/deep/plum.jpg", [12, 10], &[100, 20, 120]);
    place.write("new/notes.txt", "to do");
    let printed = place.succeed("images", &["--predict", "new", "--model", "m.safetensors"]);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "file,class,probability");
    assert!(lines[1].starts_with("\"new/a,b.png\",lemon,") && lines[2].starts_with("new/deep/plum.jpg,plum,"), "{printed}");
    // The layout of PyTorch.
    let file = Checkpoint::load(place.path("m.safetensors")).expect("a model");
    let shape = |wanted: &str| file.tensors().find(|(name, ..)| *name == wanted).map(|(_, shape, _)| shape);
    assert_eq!((shape("layers.0.conv1.weight"), shape("whiten.weight")), (Some(&[16, 24, 3, 3][..]), Some(&[24, 3, 2, 2][..])));
    assert_eq!(file.metadata::<String>("conv_layout", "a layout").ok().as_deref(), Some("oihw"));
    let probability: f64 = lines[2].rsplit(',').next().and_then(|number| number.parse().ok()).expect("a number");
    assert!(lines.len() == 3 && (0.5..=1.0).contains(&probability), "{printed}");

    place.write("new/damaged.png", "no image");
    let args = ["--predict", "new/damaged.png", "--model", "m.safetensors"];
    let (output, stderr) = place.run("images", &args);
    assert!(output.status.code() == Some(1) && stderr.contains("`--on-bad-file skip`"), "{stderr}");
    place.succeed("images", &[&args[..], &["--on-bad-file", "skip"]].concat());
    place.refuse("images", &["--predict", "no/such", "--model", "m.safetensors"], &["no/such"]);
    place.refuse("images", &["--predict", "new", "--model", "no.safetensors"], &["no.safetensors"]);
    place.refuse("images", &["--predict", "new", "--model", "s3://bucket/m.safetensors"], &["models are read from a path"]);
    let (output, _) = place.run("images", &["--predict", "new", "--epochs", "3"]);
    check_usage_error(&output, &["--predict"], &["--epochs"]);
}

#[test]
fn the_same_image_in_two_classes_or_sets_is_named() {
    let place = Place::new();
    fruit(&place, "fruit/train");
    for i in 0..5 {
        image(&place, &format!("fruit/test/lemon/{i}.png"), [12, 10], &[150, 150, 20]);
        image(&place, &format!("fruit/test/plum/{i}.png"), [12, 10], &[100, 20, 120]);
    }
    let args = ["--data", "fruit", "--batch", "32", "--epochs", "1", "--model", "m.safetensors"];
    let (_, stderr) = place.run("images", &args);
    assert!(!stderr.contains("the training set"), "{stderr}");
    let copy = |from: &str, to: &str| fs::copy(place.path(from), place.path(to)).expect("it can be copied");
    copy("fruit/train/lemon/0.png", "fruit/train/plum/copy.png");
    copy("fruit/train/lemon/2.png", "fruit/train/plum/copy2.png");
    // The same again in one class.
    copy("fruit/train/lemon/4.png", "fruit/train/lemon/copy.png");
    copy("fruit/train/plum/0.png", "fruit/test/plum/copy.png");
    copy("fruit/train/plum/2.png", "fruit/test/lemon/copy.png");
    let (_, stderr) = place.run("images", &args);
    for said in [
        "fruit: 2 images of the training set are in two classes, such as `fruit/train/lemon/0.png` and `fruit/train/plum/copy.png`",
        "fruit: 1 image of the test set is in the training set as well, such as `fruit/train/plum/0.png` and `fruit/test/plum/copy.png`",
        "fruit: 1 image of the test set is in the training set in another class as well, such as `fruit/train/plum/2.png` and",
    ] {
        assert_eq!(stderr.matches(said).count(), 1, "{said}: {stderr}");
    }
}

#[test]
fn a_model_is_written_although_its_report_cannot_be() {
    let place = Place::new();
    fruit(&place, "fruit");
    let args = ["--data", "fruit", "--epochs", "40", "--model", "m.safetensors", "--report", "pages/r.html", "--json", "r.json"];
    fs::create_dir(place.path("pages")).expect("it can be created");
    let mut child = place.command("images", &args).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.starts_with("epoch 1/")), "it trains");
    fs::remove_dir_all(place.path("pages")).expect("there is nothing else in it");
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.starts_with("warning: the report was not written: ")), "{rest:?}");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert!(place.path("m.safetensors").is_file() && place.json("r.json")["valid_accuracy"].is_number(), "{rest:?}");
}

#[cfg(unix)]
#[test]
fn links_to_nowhere_are_skipped_like_other_bad_files() {
    let place = Place::new();
    more_fruit(&place, "fruit", false);
    for name in ["fruit/plum/gone.png", "fruit/gone"] {
        std::os::unix::fs::symlink("no/such", place.path(name)).expect("a link");
    }
    let args = ["--data", "fruit", "--batch", "9", "--epochs", "1", "--model", "m.safetensors"];
    place.refuse("images", &args, &["gone"]);
    let (output, stderr) = place.run("images", &[&args[..], &["--on-bad-file", "skip"]].concat());
    assert!(output.status.success() && stderr.contains("skipped 2 files that are not images"), "{stderr}");
}

#[test]
fn an_import_of_images_names_their_classes() {
    let place = Place::new();
    more_fruit(&place, "fruit", false);
    let printed = place.succeed("import", &["fruit", "fruit.safetensors"]);
    let line = |name: &str| printed.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    assert!(line("labels").ends_with("2 classes") && line("classes").ends_with("lemon, plum"), "{printed}");
}

#[test]
fn images_are_resized_and_converted() {
    let place = Place::new();
    fruit(&place, "fruit/train");
    for i in 0..5 {
        image(&place, &format!("fruit/val/lemon/{i}.png"), [40, 30], &[150, 150, 20]);
        image(&place, &format!("fruit/val/plum/{i}.png"), [20, 30], &[60]);
    }
    refuse(
        &place,
        &["--data", "fruit"],
        &["`plum/0.png`: found 20 × 30", "expected 40 × 30", "as `lemon/0.png` has", "resize them with `--size`"],
    );
    refuse(
        &place,
        &["--data", "fruit", "--size", "16"],
        &["plum/0.png`: found 16 × 16 pixels of 1", "choose the channels with `--channels`"],
    );
    let (output, stderr) = place.run("images", &["--data", "fruit", "--size", "16x14", "--channels", "grey", "--epochs", "2"]);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("images: 16 x 14 pixels of 1 channels, 2 classes; 80 to train on, 10 to validate with"), "{stderr}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("with views"), "grey images are not mirrored");
}

#[test]
fn each_recipe_trains() {
    let place = Place::new();
    fruit(&place, "fruit");
    for recipe in ["page", "airbench", "muon"] {
        let printed = place.succeed("images", &["--data", "fruit", "--recipe", recipe, "--epochs", "1", "--batch", "32"]);
        assert!(printed.contains("accuracy"), "{recipe}: {printed}");
    }
}

#[test]
fn images_that_cannot_be_used_are_named() {
    let place = Place::new();
    fruit(&place, "fruit");
    let file = |name: &str| place.path("fruit").join(name);

    let whole = fs::read(file("plum/0.png")).expect("an image");
    fs::write(file("plum/0.png"), &whole[..whole.len() / 2]).expect("it can be written");
    refuse(&place, &["--data", "fruit"], &["`plum/0.png`", "pass `--on-bad-file skip`"]);
    place.succeed("images", &["--data", "fruit", "--on-bad-file", "skip", "--epochs", "1"]);
    fs::write(file("plum/0.png"), whole).expect("it can be written");

    image(&place, "fruit/plum/odd.png", [12, 11], &[100, 20, 120]);
    refuse(
        &place,
        &["--data", "fruit"],
        &["`plum/odd.png`: found 12 × 11 pixels", "expected 12 × 10", "resize them with `--size`"],
    );
    image(&place, "fruit/plum/odd.png", [12, 10], &[100]);
    refuse(&place, &["--data", "fruit"], &["`plum/odd.png`: found 12 × 10 pixels of 1 channels", "`--channels`"]);
    fs::remove_file(file("plum/odd.png")).expect("it can be removed");

    refuse(&place, &["--data", "fruit", "--size", "8"], &["[8, 8, 3]", "at least 9 pixels", "`--size`"]);
    refuse(&place, &["--data", "fruit", "--pad", "10"], &["--pad 10", "12 x 10", "at most 9"]);
    refuse(&place, &["--data", "fruit", "--cutout", "11"], &["--cutout 11", "12 x 10", "10 or less"]);
    refuse(&place, &["--data", "fruit", "--batch", "73"], &["--batch 73", "72 images", "72 or less"]);
    refuse(&place, &["--data", "fruit", "--recipe", "page", "--batch", "40"], &["--batch 40", "multiple of 32"]);
    refuse(&place, &["--data", "no/such"], &["no/such", "no such file or folder"]);
    refuse(&place, &["--data", "fruit/plum"], &["fruit/plum: `0.png`: found an image in no folder", "move it"]);

    fs::remove_dir_all(file("plum")).expect("it can be removed");
    refuse(&place, &["--data", "fruit"], &["fruit: found one class (`lemon`), expected at least 2"]);
    fs::create_dir(file("melon")).expect("it can be created");
    for i in 4..40 {
        fs::remove_file(file(&format!("lemon/{i}.{}", ["png", "jpg"][i % 2]))).expect("it can be removed");
    }
    refuse(&place, &["--data", "fruit"], &["fruit: found 4 images, expected at least 20"]);
}

#[test]
fn a_test_set_must_have_the_classes_of_the_training_set() {
    let place = Place::new();
    fruit(&place, "fruit/train");
    image(&place, "fruit/test/kiwi/0.png", [12, 10], &[50, 120, 50]);
    refuse(&place, &["--data", "fruit"], &["the test set of fruit: classes are `kiwi`, expected `lemon`, `plum`"]);

    // Tables from elsewhere have labels without names.
    let idx = |name: &str, shape: &[u32], values: &[u8]| {
        let mut bytes = vec![0, 0, 8, shape.len() as u8];
        shape.iter().for_each(|len| bytes.extend(len.to_be_bytes()));
        bytes.extend(values);
        fs::write(place.path(name), bytes).expect("it can be written");
    };
    let labels: Vec<u8> = (0..40).map(|row| row % 3).collect();
    idx("train-images-idx3-ubyte", &[40, 9, 9], &[7; 40 * 81]);
    idx("train-labels-idx1-ubyte", &[40], &labels);
    idx("t10k-images-idx3-ubyte", &[1, 9, 9], &[7; 81]);
    idx("t10k-labels-idx1-ubyte", &[1], &[3]);
    refuse(
        &place,
        &["--data", "train-images-idx3-ubyte"],
        &["the test set of train-images-idx3-ubyte: image 0 has label 3", "0 to 2"],
    );
    refuse(&place, &["--data", "train-images-idx3-ubyte", "--size", "16"], &["`--size`", "another format"]);

    // Labels from 1, as those of the letters of EMNIST.
    fs::remove_file(place.path("t10k-images-idx3-ubyte")).expect("it can be removed");
    idx("train-labels-idx1-ubyte", &[40], &labels.iter().map(|label| label + 1).collect::<Vec<u8>>());
    let args = ["--data", "train-images-idx3-ubyte", "--epochs", "1", "--model", "m.safetensors"];
    let (output, stderr) = place.run("images", &args);
    assert!(output.status.success(), "{stderr}");
    let warning = "warning: train-images-idx3-ubyte: 1 of 4 classes have no image, the first is class 0; ";
    assert!(stderr.contains(warning) && stderr.contains("`import --first-label`"), "{stderr}");
}

#[test]
fn what_an_import_leaves_out_is_said() {
    let place = Place::new();
    fruit(&place, "fruit");
    fs::create_dir(place.path("fruit/kiwi")).expect("it can be created");
    fs::write(place.path("fruit/plum/notes.txt"), "to do").expect("it can be written");
    let args = ["--data", "fruit", "--epochs", "1", "--on-bad-file", "skip", "--model", "m.safetensors"];
    let (output, stderr) = place.run("images", &args);
    assert!(output.status.success(), "{stderr}");
    for words in ["warning: the folder of class `kiwi` has no image", "warning: skipped 1 ", "notes.txt"] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
}

#[test]
fn nothing_is_written_among_the_images() {
    let place = Place::new();
    fruit(&place, "fruit");
    for [option, path] in [["--model", "fruit/m"], ["--report", "fruit/plum/r.html"], ["--save-tables", "fruit/tables"]] {
        let (output, stderr) = place.run("images", &["--data", "fruit", "--model", "m.safetensors", option, path]);
        assert!(
            output.status.code() == Some(1) && stderr.contains(&format!("{path}: {option} is in the folder --data")),
            "{stderr}"
        );
        assert!(!place.path("fruit/tables").exists(), "{option}: a folder has been made");
    }
}

#[test]
fn options_that_make_no_sense() {
    let place = Place::new();
    for (args, words) in [
        (&[][..], &["--data"][..]),
        (&["--data", "x", "--size", "0"], &["--size", "from 1 to 16384"]),
        (&["--data", "x", "--size", "3x"], &["--size"]),
        (&["--data", "x", "--recipe", "adam"], &["page, airbench, muon"]),
        (&["--data", "x", "--epochs", "0"], &["--epochs", "above 0"]),
    ] {
        let (output, _) = place.run("images", args);
        check_usage_error(&output, args, words);
    }
    fruit(&place, "fruit");
    let table = place.path("t.safetensors");
    let options = ImagesOptions { channels: Channels::Rgb, ..ImagesOptions::default() };
    import(place.path("fruit"), &table, &options).expect("a table");
    let args = ["--data", "t.safetensors", "--save-tables", "kept"];
    place.refuse("images", &args, &["t.safetensors: found tables", "`--save-tables`"]);
    assert!(!place.path("kept").exists(), "nothing was written");
    fs::create_dir(place.path("mine")).expect("it can be created");
    place.write("mine/train.safetensors", "not a table");
    place.refuse(
        "images",
        &["--data", "fruit", "--save-tables", "mine"],
        &["mine/train.safetensors: --save-tables would replace"],
    );
    fs::create_dir(place.path("new")).expect("it can be created");
    for option in ["--model", "--report", "--json"] {
        let args = ["--data", "fruit", "--save-tables", "new", option, "new/test.safetensors"];
        place.refuse("images", &args, &[&format!("{option} names the same file as --save-tables")]);
    }
    let args = ["--data", "fruit", "--model", "mine/m.safetensors", "--report", "mine"];
    place.refuse("images", &args, &["mine: --report cannot be written: is a folder"]);
    place.refuse("images", &["--data", "fruit", "--epochs", "0.1"], &["--epochs 0.1: an epoch has 1 steps"]);
    for i in 0..24 {
        image(&place, &format!("few/lemon/{i}.png"), [12, 10], &[150, 150, 20]);
        image(&place, &format!("few/plum/{i}.png"), [12, 10], &[100, 20, 120]);
    }
    place.succeed("images", &["--data", "few", "--recipe", "page", "--epochs", "1"]);
    let (output, stderr) = place.run("images", &["--data", "t.safetensors", "--model", "t.safetensors"]);
    assert!(output.status.code() == Some(1) && stderr.contains("--model names the same file as --data"), "{stderr}");
    Table::open(table).expect("it is as it was");
}

/// A thousand of the test images of MNIST, as IDX files of their own.
#[test]
fn digits_are_learned() {
    let Some(data) = std::env::var_os("BRISK_DATA").map(|folder| PathBuf::from(folder).join("mnist")) else {
        say("BRISK_DATA is not set: THE RUN OVER HANDWRITTEN DIGITS HAS NOT RUN");
        return;
    };
    const N: usize = 1000;
    let place = Place::new();
    let cut = |from: &str, to: &str, header: usize, row_bytes: usize| {
        let file = fs::File::open(data.join(from)).expect("BRISK_DATA has MNIST");
        let mut bytes = vec![0; header + N * row_bytes];
        flate2::read::GzDecoder::new(file).read_exact(&mut bytes).expect("ten thousand rows");
        bytes[4..8].copy_from_slice(&(N as u32).to_be_bytes());
        fs::write(place.path(to), bytes).expect("it can be written");
    };
    fs::create_dir(place.path("digits")).expect("it can be created");
    cut("t10k-images-idx3-ubyte.gz", "digits/train-images-idx3-ubyte", 16, 784);
    cut("t10k-labels-idx1-ubyte.gz", "digits/train-labels-idx1-ubyte", 8, 1);
    let printed = place.succeed("images", &["--data", "digits", "--epochs", "6"]);
    assert!(number_after(&printed, "accuracy") > 85.0, "{printed}");
}
