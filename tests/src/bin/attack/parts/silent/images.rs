//! The programs that train on images, and pictures that are easily taken for others.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};

use super::files::png;
use super::found::Found;
use super::tables::part;
use super::{Content, Expected, Row, computed, either, refused, refused_or_said, row, said, terminated};

/// A PNG file with `n_channels` samples of `n_bits` for each pixel.
fn picture([height, width]: [usize; 2], n_channels: usize, n_bits: u8, sample: impl Fn(usize) -> u16) -> Result<Vec<u8>> {
    let colour = match n_channels {
        1 => 0,
        3 => 2,
        _ => 6,
    };
    let mut rows = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    for row in 0..height {
        rows.write_all(&[0])?;
        for i in 0..width * n_channels {
            let bytes = sample(row * width * n_channels + i).to_be_bytes();
            rows.write_all(if n_bits == 16 { &bytes } else { &bytes[1..] })?;
        }
    }
    let size = [height, width].map(|side| u32::try_from(side).map(u32::to_be_bytes));
    let [height, width] = [size[0]?, size[1]?];
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in
        [(b"IHDR", [&width[..], &height, &[n_bits, colour, 0, 0, 0]].concat()), (b"IDAT", rows.finish()?), (b"IEND", Vec::new())]
    {
        let checked = [&kind[..], &data].concat();
        let mut sum = flate2::Crc::new();
        sum.update(&checked);
        png.extend(u32::try_from(data.len())?.to_be_bytes());
        png.extend(checked);
        png.extend(sum.sum().to_be_bytes());
    }
    Ok(png)
}

/// Colour images of 12 x 10 pixels in two classes, which colour tells apart.
fn with_fruit(mut row: Row, n_of_each: usize) -> Result<Row> {
    for (class, colour) in [("lemon", [190, 180, 40]), ("plum", [120, 30, 150])] {
        for i in 0..n_of_each {
            let noise = |sample: usize| (40.0 * part(i, sample + class.len())) as u16;
            let picture = picture([12, 10], 3, 8, |sample| colour[sample % 3] + noise(sample))?;
            row = row.file(&format!("fruit/{class}/{i}.png"), picture);
        }
    }
    Ok(row)
}

fn fruit(name: &str, options: &str, expected: Expected) -> Result<Row> {
    with_fruit(row(name, &[&format!("images --data fruit {options}")], expected), 24)
}

/// Two images of each of the classes `a` and `b`, of which one is another file.
fn among_images(name: &str, other: (&str, Vec<u8>), expected: Expected) -> Row {
    let files = ["a/1.png", "a/2.png", "b/1.png", "b/2.png"];
    let line = "import images out.safetensors --json out.json";
    let files = files.iter().filter(|file| **file != other.0);
    let row = files.fold(row(name, &[line], expected), |row, file| row.file(&format!("images/{file}"), png()));
    row.file(&format!("images/{}", other.0), other.1)
}

/// The bytes of the first image of the table `out.safetensors`.
fn first_image(found: &Found<'_>) -> Result<Vec<u8>> {
    Ok(found.table("out.safetensors")?.rows::<u8>(0..1)?.to_vec())
}

/// A row with the files of a data set of letters as EMNIST's: `n` images of 28 x 28 pixels, and labels from 1.
fn letters(name: &str, n: u32, lines: &[&str], expected: Expected) -> Row {
    let mut images = [&[0, 0, 8, 3][..], &n.to_be_bytes(), &[0, 0, 0, 28, 0, 0, 0, 28]].concat();
    let mut labels = [&[0, 0, 8, 1][..], &n.to_be_bytes()].concat();
    for i in 0..n as usize {
        let ink = |pixel: usize| if pixel % 26 == i % 26 { 200 } else { 0 };
        images.extend((0..784).map(|pixel| ink(pixel) + (50.0 * part(i, pixel)) as u8));
        labels.push((i % 26) as u8 + 1);
    }
    let row = row(name, lines, expected).file("letters/emnist-train-images-idx3-ubyte", images);
    row.file("letters/emnist-train-labels-idx1-ubyte", labels)
}

const LETTERS: &str = "import letters/emnist-train-images-idx3-ubyte out.safetensors";

/// The binary files of CIFAR-10 in a folder, with `n` images in each of the five batches to train on.
fn with_cifar(folder: &str, n: usize, row: Row) -> Row {
    let batch = |first: usize, n: usize| -> Vec<u8> {
        let image = |i: usize| (0..3073).map(move |byte| if byte == 0 { (i % 10) as u8 } else { (255.0 * part(i, byte)) as u8 });
        (first..first + n).flat_map(image).collect()
    };
    let row = (1..=5).fold(row, |row, number| row.file(&format!("{folder}/data_batch_{number}.bin"), batch(number * n, n)));
    row.file(&format!("{folder}/test_batch.bin"), batch(6 * n, 10))
}

/// `cifar10` with a network that takes a second to train.
const CIFAR: &str = "cifar10 --widths 8,8,8 --batch-rows 20";

pub(super) fn rows() -> Vec<Row> {
    made().expect("pictures can be encoded")
}

fn made() -> Result<Vec<Row>> {
    let learns = |found: &Found<'_>| {
        let accuracy = found.result("out.json", "test_accuracy")?;
        ensure!(accuracy > 0.9, "the accuracy is {accuracy}");
        Ok(())
    };
    let mut rows = vec![
        // Letters with labels 1 to 26.
        letters(
            "labels 1 to 26, of which the first is named",
            1300,
            &[&format!("{LETTERS} --first-label 1"), "first_network out.safetensors --json out.json"],
            computed(learns),
        ),
        letters(
            "labels 1 to 26 for a network of 26 classes",
            260,
            &[LETTERS, "first_network out.safetensors --json out.json"],
            refused(&["26"]),
        ),
        letters("labels below the first that is named", 52, &[&format!("{LETTERS} --first-label 2")], refused(&["1", "label"])),
        letters(
            "labels 1 to 26 for a network of as many classes as there are",
            260,
            &["images --data letters --epochs 1 --model model.safetensors --json out.json"],
            refused_or_said(&["label|class"], &["26 classes|class 0|class `0`"]),
        ),
        letters("a first label that is no number", 26, &[&format!("{LETTERS} --first-label one")], refused(&["--first-label"])),
        // What is written where images are read, and what a run that was stopped leaves.
        fruit("a model in the folder of the images", "--model fruit/m.safetensors", refused(&["--model", "--data"]))?,
        fruit("a model in the folder of a class", "--model fruit/plum/m.safetensors", refused(&["--model", "--data"]))?,
        fruit(
            "a report in the folder of the images",
            "--model m.safetensors --report fruit/r.html",
            refused(&["--report", "--data"]),
        )?,
        fruit(
            "tables in the folder of the images",
            "--model m.safetensors --epochs 1 --save-tables fruit/tables",
            refused(&["--save-tables", "--data"]),
        )?,
        fruit(
            "training on images that is asked to stop",
            "--model m.safetensors --epochs 100000",
            terminated(&["no model|no checkpoint"]),
        )?
        .stopped_at("network:")
        .then(|dir| {
            ensure!(!dir.join("m.safetensors").exists(), "there is a model");
            Ok(())
        }),
        fruit("a batch of more images than there are", "--model m.safetensors --batch 1000", refused(&["--batch", "1000"]))?,
        row(
            "a size for tables of images",
            &["images --data out.safetensors --model m.safetensors --size 8"],
            refused(&["--size"]),
        )
        .file("out.safetensors", b"".to_vec()),
        fruit("a shift by more pixels than there are", "--model m.safetensors --pad 12", refused(&["--pad", "12"]))?,
        // Pictures.
        among_images(
            "an image of 16 bits among images of 8",
            ("a/1.png", picture([4, 4], 3, 16, |sample| 257 * (sample as u16 % 256))?),
            either(&["a/1.png", "16"], |found| {
                let (found, expected) = (first_image(found)?, Vec::from_iter(0..48));
                ensure!(found == expected, "the image is {found:?}, expected {expected:?}");
                Ok(())
            }),
        ),
        among_images(
            "an image of 16 bits of which the lower 8 are used",
            ("a/1.png", picture([4, 4], 3, 16, |sample| 5 * sample as u16)?),
            refused_or_said(&["a/1.png", "16"], &["a/1.png|16"]),
        ),
        among_images("an image of another size", ("a/2.png", picture([5, 4], 3, 8, |_| 9)?), refused(&["a/2.png", "--size"])),
        among_images(
            "a grey image among coloured ones",
            ("a/2.png", picture([4, 4], 1, 8, |_| 9)?),
            refused(&["a/2.png", "--channels"]),
        ),
        among_images(
            "an image with alpha among images without",
            ("b/2.png", picture([4, 4], 4, 8, |_| 9)?),
            refused(&["b/2.png", "--channels"]),
        ),
        among_images("an image that is cut off", ("b/2.png", png()[..60].to_vec()), refused(&["b/2.png"])),
        among_images("an image without a byte", ("b/2.png", Vec::new()), refused(&["b/2.png"])),
        among_images("text among images", ("b/notes.txt", b"to do".to_vec()), refused_or_said(&["notes.txt"], &["notes.txt"])),
        among_images("an image beside the folders of classes", ("c.png", png()), refused_or_said(&["c.png"], &["c.png"])),
        among_images(
            "a folder in the folder of a class",
            ("b/more/3.png", png()),
            either(&["more"], |found| {
                found.classes(&["a", "b"])?;
                found.labels(&[0.0, 0.0, 1.0, 1.0, 1.0])
            }),
        ),
        among_images("classes that differ in case", ("A/1.png", png()), refused_or_said(&["A"], &["`A`", "`a`"])),
        among_images(
            "an image with the name of another kind",
            ("a/2.jpg", png()),
            computed(|found| found.labels(&[0.0, 0.0, 0.0, 1.0, 1.0])),
        ),
    ];
    // CIFAR-10.
    rows.push(with_cifar(
        "other",
        20,
        with_cifar(
            "one",
            10,
            row(
                "files of CIFAR-10 other than those that tables were made from",
                &[
                    &format!("{CIFAR} --data one --steps 1 --json one.json"),
                    &format!("{CIFAR} --data other --steps 1 --json out.json"),
                ],
                either(&["--data|other"], |found| {
                    let n_rows = found.result("out.json", "rows")?;
                    ensure!(n_rows == 100.0, "the run has {n_rows} rows, expected 100");
                    Ok(())
                }),
            ),
        ),
    ));
    for (option, value) in [
        ("--runs", "0"),
        ("--epochs", "nan"),
        ("--epochs", "inf"),
        ("--epochs", "0"),
        ("--steps", "0"),
        ("--images", "0"),
        ("--images", "1000"),
        ("--test-images", "0"),
        ("--test-images", "1000"),
        ("--seed", "18446744073709551615"),
        ("--mixup", "nan"),
        ("--cutmix", "0"),
    ] {
        let steps = if option == "--steps" { "" } else { " --steps 1" };
        let line = format!("{CIFAR} --data one{steps} {option} {value} --json out.json");
        rows.push(with_cifar("one", 10, row(format!("cifar10 with {option} {value}"), &[&line], refused(&[option]))));
    }
    for option in ["--epochs nan", "--epochs 0", "--mixup 0", "--seed=-1", "--size 0", "--cutout 11"] {
        let name = option.split([' ', '=']).next().context("an option has a name")?;
        let line = format!("--model m.safetensors {option}");
        rows.push(fruit(&format!("images with {option}"), &line, refused(&[name]))?);
    }
    rows.push(
        fruit("a class that is an empty folder, trained on", "--model m.safetensors --epochs 1", said(&["kiwi"]))?
            .content("fruit/kiwi", Content::Folder),
    );
    let skipping = "--model m.safetensors --epochs 1 --on-bad-file skip";
    rows.push(
        fruit("a file that is no image and is skipped, trained on", skipping, said(&["skipped 1", "notes.txt"]))?
            .file("fruit/plum/notes.txt", "to do"),
    );
    rows.push(
        fruit("a file that is no image, trained on", skipping.trim_end_matches(" --on-bad-file skip"), refused(&["notes.txt"]))?
            .file("fruit/plum/notes.txt", "to do"),
    );
    rows.push(fruit(
        "images of which a few are kept for validation",
        "--model m.safetensors --epochs 2 --json out.json",
        said(&["held out"]),
    )?);
    Ok(rows)
}
