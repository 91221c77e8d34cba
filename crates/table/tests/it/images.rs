//! Folders and archives of images: the real ones, sizes and channels that differ, and files that are not images.

use std::fs;
use std::path::{Path, PathBuf};

use brisk_table::{
    ArchiveEnd, BadRows, Channels, DType, ImagesOptions, ImportOptions, ImportReport, ImportSetting, ImportWarning, Orientation,
    Table, import, import_with_progress,
};
use image::{ExtendedColorType, ImageFormat};

use crate::real_files::data;

const SKIP: ImagesOptions = ImagesOptions {
    channels: Channels::AsStored,
    size: None,
    bad_files: BadRows::Skip,
    n_threads: 0,
    orientation: Orientation::Upright,
    archive_end: ArchiveEnd::Required,
    like: None,
};

/// Writes a PNG or JPEG with those pixels, depending on the extension of its name.
fn write(folder: &Path, name: &str, size: (u32, u32), colour: ExtendedColorType, pixels: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let format = if name.ends_with("png") { ImageFormat::Png } else { ImageFormat::Jpeg };
    image::save_buffer_with_format(path, pixels, size.0, size.1, colour, format).unwrap();
}

/// Two classes, four images of 2 × 1 pixels; `i` colours image `i`.
fn four_images(folder: &Path) {
    for (i, name) in (0..).zip(["a/1.png", "a/2.png", "b/deep/3.png", "b/4.png"]) {
        write(folder, name, (2, 1), ExtendedColorType::Rgb8, &[i, 10, 20, i, 11, 21]);
    }
}

fn table_of(source: &Path, options: ImagesOptions) -> Result<(ImportReport, Table), String> {
    let (folder, dest) = crate::scratch();
    let report = import(source, &dest, &options).map_err(|error| error.to_string());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), usize::from(report.is_ok()), "something was left behind");
    let table = Table::open(&dest);
    Ok((report?, table.unwrap()))
}

#[test]
fn classes_whose_names_differ_in_case_are_reported() {
    let (folder, _) = crate::scratch();
    four_images(folder.path());
    let (report, _) = table_of(folder.path(), ImagesOptions::default()).unwrap();
    assert_eq!(report.warnings, []);
    write(folder.path(), "B/1.png", (2, 1), ExtendedColorType::Rgb8, &[9; 6]);
    // On a file system that does not tell them apart, there is one folder.
    if fs::read_dir(folder.path()).unwrap().count() == 3 {
        let (report, table) = table_of(folder.path(), ImagesOptions::default()).unwrap();
        assert_eq!(table.classes(), ["B", "a", "b"]);
        assert_eq!(report.warnings, [ImportWarning::SimilarClasses { classes: ["B", "b"].map(str::to_owned) }]);
    }
}

/// `a`, then `b`: by paths, `b/4.png` before `b/deep/3.png`.
#[test]
fn classes_are_sorted_and_so_are_files() {
    let (folder, _) = crate::scratch();
    four_images(folder.path());
    let (report, table) = table_of(folder.path(), ImagesOptions::default()).unwrap();
    table.verify().unwrap();
    assert_eq!((report.n_rows, table.row_shape(), table.dtype()), (4, [1, 2, 3].as_slice(), DType::U8));
    assert_eq!(table.labels::<u32>().unwrap(), [0, 0, 1, 1]);
    assert_eq!(table.classes(), ["a", "b"]);
    let expected = [0, 1, 3, 2].map(|i| [i, 10, 20, i, 11, 21]).concat();
    assert_eq!(table.rows::<u8>(0..4).unwrap(), expected);
}

#[test]
fn any_number_of_threads_makes_the_same_table() {
    let (folder, _) = crate::scratch();
    for i in 0..200_u8 {
        let pixels: Vec<u8> = (0..12_u8).map(|at| at.wrapping_mul(i)).collect();
        write(folder.path(), &format!("{}/{i}.png", i % 7), (2, 2), ExtendedColorType::Rgb8, &pixels);
    }
    let bytes = |n_threads| {
        let (_folder, dest) = crate::scratch();
        let mut last = None;
        let options = ImagesOptions { n_threads, ..ImagesOptions::default() };
        import_with_progress(folder.path(), &dest, &options, |progress| last = Some(progress)).unwrap();
        let last = last.expect("there were rows to write");
        assert_eq!((last.n_rows, last.bytes_read), (200, last.total_bytes));
        fs::read(dest).unwrap()
    };
    let one = bytes(1);
    for n_threads in [2, 3, 7] {
        assert!(bytes(n_threads) == one, "{n_threads} threads make another table than one");
    }
}

#[test]
fn channels_are_converted() {
    let (folder, _) = crate::scratch();
    write(folder.path(), "x/1.png", (1, 1), ExtendedColorType::L8, &[100]);
    write(folder.path(), "x/2.png", (1, 1), ExtendedColorType::Rgba8, &[200, 100, 50, 7]);
    let rows = |channels| {
        let (_, table) = table_of(folder.path(), ImagesOptions { channels, ..ImagesOptions::default() })?;
        Ok(table.rows::<u8>(0..2).unwrap().to_vec())
    };
    assert_eq!(rows(Channels::Rgb), Ok(vec![100, 100, 100, 200, 100, 50]));
    assert_eq!(rows(Channels::Rgba), Ok(vec![100, 100, 100, 255, 200, 100, 50, 7]));
    assert_eq!(rows(Channels::Grey), Ok(vec![100, 124]));
    let message: String = rows(Channels::AsStored).unwrap_err();
    assert!(
        message.contains("`x/2.png`: found 1 × 1 pixels of 4 channels, expected 1 × 1 pixels of 1 channels, as `x/1.png` has"),
        "{message}"
    );
    assert!(message.contains("`ImagesOptions::channels`"), "{message}");
}

/// `Image.convert("L")` of Pillow 13.0.0.
#[test]
fn grey_of_a_colour_equals_pillow() {
    let (folder, _) = crate::scratch();
    let colours: [[u8; 3]; 14] = [
        [255, 0, 0],
        [0, 255, 0],
        [0, 0, 255],
        [200, 100, 50],
        [10, 200, 250],
        [255, 255, 254],
        [1, 0, 0],
        [0, 1, 0],
        [2, 1, 1],
        [128, 64, 32],
        [77, 150, 29],
        [0, 0, 4],
        [0, 0, 5],
        [12, 34, 56],
    ];
    write(folder.path(), "x/1.png", (14, 1), ExtendedColorType::Rgb8, &colours.concat());
    let grey = ImagesOptions { channels: Channels::Grey, ..ImagesOptions::default() };
    let (_, table) = table_of(folder.path(), grey).unwrap();
    assert_eq!(table.rows::<u8>(0..1).unwrap(), [76, 150, 29, 124, 149, 255, 0, 1, 1, 79, 114, 0, 1, 30]);
}

#[test]
fn sizes_that_differ_are_named() {
    let (folder, _) = crate::scratch();
    four_images(folder.path());
    write(folder.path(), "a/0.png", (1, 2), ExtendedColorType::Rgb8, &[0; 6]);
    for options in [ImagesOptions::default(), SKIP] {
        let message = table_of(folder.path(), options).unwrap_err();
        let expected = "`a/1.png`: found 1 × 2 pixels of 3 channels, expected 2 × 1 pixels of 3 channels, as `a/0.png` has; resize them with `ImagesOptions::size`";
        assert!(message.contains(expected), "{message}");
    }
}

/// Means of pixels, computed by hand: a triangle filter that halves a side weights four pixels 1 3 3 1, without those outside the
/// image.
#[test]
fn images_are_resized() {
    let (folder, _) = crate::scratch();
    let size = |size| ImagesOptions { size: Some(size), ..ImagesOptions::default() };
    write(folder.path(), "a/wide.png", (4, 2), ExtendedColorType::L8, &[0, 70, 140, 210, 0, 70, 140, 210]);
    write(folder.path(), "b/small.png", (2, 2), ExtendedColorType::L8, &[1, 2, 3, 4]);
    let (report, table) = table_of(folder.path(), size([2, 2])).unwrap();
    assert_eq!((report.n_rows, table.row_shape()), (2, [2, 2, 1].as_slice()));
    // The wide image is cropped to its centre; the other has this size already.
    assert_eq!(table.rows::<u8>(0..2).unwrap(), [70, 140, 70, 140, 1, 2, 3, 4]);
    // (3 · 0 + 3 · 70 + 140) / 7 and (70 + 3 · 140 + 3 · 210) / 7.
    fs::remove_file(folder.path().join("b/small.png")).unwrap();
    let (_, table) = table_of(folder.path(), size([1, 2])).unwrap();
    assert_eq!(table.rows::<u8>(0..1).unwrap(), [50, 160]);
    // Colour images are converted to grey before they are resized.
    write(folder.path(), "c/rgb.jpeg", (3, 3), ExtendedColorType::Rgb8, &[90; 27]);
    let (_, table) = table_of(folder.path(), ImagesOptions { channels: Channels::Grey, ..size([5, 7]) }).unwrap();
    assert_eq!((table.row_shape(), table.rows::<u8>(1..2).unwrap()), ([5, 7, 1].as_slice(), [90; 35].as_slice()));
    // Resizing does not help if channels differ.
    let message = table_of(folder.path(), size([5, 7])).unwrap_err();
    assert!(message.contains("`c/rgb.jpeg`: found 5 × 7 pixels of 3 channels, expected "), "{message}");
    for wrong in [[0, 4], [4, 1 << 15]] {
        let message = table_of(folder.path(), size(wrong)).unwrap_err();
        assert!(message.contains("`ImagesOptions::size`: found ") && message.contains("sides from 1 to 16384"), "{message}");
    }
}

/// Waves of colour: `height` × `width` pixels.
fn waves([height, width]: [u32; 2], n_channels: usize) -> Vec<u8> {
    let wave = |y: u32, x: u32, channel: usize| {
        127.0 + 120.0 * (y as f64 / 3.0 + channel as f64).sin() * (x as f64 / (4.0 + channel as f64)).cos()
    };
    let pixel = |i: u32| (0..n_channels).map(move |channel| wave(i / width, i % width, channel) as u8);
    (0..height * width).flat_map(pixel).collect()
}

/// Tables of the same images must not depend on which library decoded them.
#[test]
fn conversions_and_sizes_equal_those_of_the_crate_image() {
    let (folder, _) = crate::scratch();
    let kinds =
        [(1, ExtendedColorType::L8), (2, ExtendedColorType::La8), (3, ExtendedColorType::Rgb8), (4, ExtendedColorType::Rgba8)];
    let deep = [
        (2, ExtendedColorType::L16),
        (4, ExtendedColorType::La16),
        (6, ExtendedColorType::Rgb16),
        (8, ExtendedColorType::Rgba16),
    ];
    for [height, width] in [[1, 1], [17, 31], [60, 23]] {
        for (n_bytes, colour) in kinds.into_iter().chain(deep) {
            let pixels = waves([height, width], n_bytes);
            write(folder.path(), &format!("a/{colour:?} {height}.png"), (width, height), colour, &pixels);
            if matches!(colour, ExtendedColorType::L8 | ExtendedColorType::Rgb8) {
                write(folder.path(), &format!("a/{colour:?} {height}.jpg"), (width, height), colour, &pixels);
            }
        }
    }
    let mut files: Vec<PathBuf> = fs::read_dir(folder.path().join("a")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for channels in [Channels::Grey, Channels::Rgb, Channels::Rgba] {
        for [height, width] in [[17, 31], [8, 8], [5, 40], [90, 33]] {
            let options = ImagesOptions { channels, size: Some([height, width]), ..ImagesOptions::default() };
            let (_, table) = table_of(folder.path(), options).unwrap();
            for (row, file) in files.iter().enumerate() {
                let image = image::open(file).unwrap();
                let image: image::DynamicImage = match channels {
                    // The crate's weights are those of BT.709.
                    Channels::Grey if image.color().has_color() => {
                        let rgb = image.into_rgb8();
                        let grey = rgb.pixels().map(|pixel| {
                            let [r, g, b] = pixel.0.map(u32::from);
                            ((19_595 * r + 38_470 * g + 7_471 * b + 0x8000) >> 16) as u8
                        });
                        image::GrayImage::from_vec(rgb.width(), rgb.height(), grey.collect()).unwrap().into()
                    }
                    Channels::Grey => image.into_luma8().into(),
                    Channels::Rgb => image.into_rgb8().into(),
                    _ => image.into_rgba8().into(),
                };
                let expected = image.resize_to_fill(width as u32, height as u32, image::imageops::FilterType::Triangle);
                let found = table.rows::<u8>(row..row + 1).unwrap();
                assert!(found == expected.as_bytes(), "{}: {channels:?}, {height} × {width}", file.display());
            }
        }
    }
}

/// A lenient decoder would fill in what is missing and accept them.
#[test]
fn jpeg_images_that_are_cut_short_are_errors() {
    let (folder, _) = crate::scratch();
    // One row of blocks, and several.
    for (name, [height, width]) in [("a/low.jpg", [8, 50]), ("a/high.jpg", [50, 20])] {
        write(folder.path(), name, (width, height), ExtendedColorType::Rgb8, &waves([height, width], 3));
        let path = folder.path().join(name);
        let image = fs::read(&path).unwrap();
        for n_bytes in (3..image.len()).rev().step_by(7) {
            fs::write(&path, &image[..n_bytes]).unwrap();
            let message = table_of(folder.path(), ImagesOptions::default()).unwrap_err();
            assert!(message.contains(name) && message.contains("found a JPEG image"), "{n_bytes} bytes: {message}");
            assert!(!message.contains('\\') && !message.contains('\n'), "{n_bytes} bytes: {message}");
        }
        // Bytes after an image are not part of it, and bytes between segments are ignored.
        let tables = image.windows(2).position(|bytes| bytes == [0xff, 0xdb]).unwrap();
        let more = [&image[..tables], &[0; 9], &image[tables..], &image[..image.len() / 2]].concat();
        fs::write(&path, more).unwrap();
        table_of(folder.path(), ImagesOptions::default()).unwrap();
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn other_files_are_errors_or_skipped() {
    #[track_caller]
    fn check(name: &str, bytes: &[u8], says: &str) {
        let (folder, _) = crate::scratch();
        four_images(folder.path());
        fs::write(folder.path().join(name), bytes).unwrap();
        let message = table_of(folder.path(), ImagesOptions::default()).unwrap_err();
        assert!(message.contains(says) && message.contains(name) && message.contains("`BadRows::Skip`"), "{message}");
        let (report, table) = table_of(folder.path(), SKIP).unwrap();
        assert_eq!((report.n_skipped, table.n_rows()), (1, 4));
        assert!(report.first_skipped[0].to_string().contains(says), "{:?}", report.first_skipped);
    }
    let (scratch, _) = crate::scratch();
    write(scratch.path(), "x.png", (2, 1), ExtendedColorType::Rgb8, &[9; 6]);
    let image = fs::read(scratch.path().join("x.png")).unwrap();
    check("a/notes", b"\0\0\0\x01Bud1", "other first bytes than a PNG or JPEG has");
    check("b/notes.png", b"not an image", "other first bytes");
    check("a/cut.png", &image[..image.len() / 2], "a complete image");
    check("a/empty.png", b"", "other first bytes");
    check("loose.png", &image, "an image in no folder");
    // A chunk that claims to be longer than the file, and a width of four billion.
    let mut forged = image.clone();
    forged[33..37].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
    check("a/forged.png", &forged, "`a/forged.png`");
    let mut wide = image.clone();
    wide[16..20].copy_from_slice(&[0xff; 4]);
    check("a/wide.png", &wide, "`a/wide.png`");
    write(scratch.path(), "x.jpg", (2, 1), ExtendedColorType::Rgb8, &[9; 6]);
    let mut jpeg = fs::read(scratch.path().join("x.jpg")).unwrap();
    check("a/cut.jpg", &jpeg[..jpeg.len() - 1], "found a JPEG image that is cut short, expected a complete image");
    // The width in its frame header, after the marker, the length, the precision and the height.
    let frame = jpeg.windows(2).position(|bytes| bytes == [0xff, 0xc0]).unwrap();
    jpeg[frame + 7..frame + 9].copy_from_slice(&[0x40, 0x01]);
    check("a/wide.jpg", &jpeg, "a side of more than 16384 pixels");
    write(scratch.path(), "x16.png", (1, 1), ExtendedColorType::L16, &[1, 2]);
    check(
        "a/16.png",
        &fs::read(scratch.path().join("x16.png")).unwrap(),
        "found 16 bits per channel (grey), expected 8 bits per channel",
    );
}

#[test]
fn nothing_to_import() {
    let (folder, _) = crate::scratch();
    let message = table_of(folder.path(), ImagesOptions::default()).unwrap_err();
    assert!(message.contains("no PNG or JPEG file in a folder of its class"), "{message}");
    let (file, _) = crate::scratch();
    let archive = file.path().join("x.tar");
    fs::write(&archive, b"this is no archive").unwrap();
    let message = table_of(&archive, ImagesOptions::default()).unwrap_err();
    assert!(message.contains("x.tar: cannot unpack (it is tar"), "{message}");
}

fn archive_of(folder: &Path) -> PathBuf {
    let path = folder.join("images.tar.gz");
    let gzip = flate2::write::GzEncoder::new(fs::File::create(&path).unwrap(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(gzip);
    for name in ["b/4.png", "a/1.png", "b/deep/3.png"] {
        archive.append_path_with_name(folder.join(name), format!("./train/{name}")).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
    path
}

#[test]
fn packed_archives_and_damaged_ones() {
    let (folder, _) = crate::scratch();
    four_images(folder.path());
    let path = archive_of(folder.path());
    let (_, table) = table_of(&path, ImagesOptions::default()).unwrap();
    // As of the folder: a single folder around the classes is none, and `deep` is in one.
    assert_eq!((table.classes(), table.labels::<u32>().unwrap()), (&["a".into(), "b".into()][..], &[1, 0, 1][..]));
    assert_eq!(table.rows::<u8>(0..3).unwrap(), [3, 0, 2].map(|i| [i, 10, 20, i, 11, 21]).concat());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    for options in [ImagesOptions::default(), SKIP] {
        let message = table_of(&path, options).unwrap_err();
        assert!(message.contains("images.tar.gz: cannot unpack"), "{message}");
    }
}

/// The README of the data says that each PNG equals its record of the test batch, and that the JPEGs are 65 off in the mean
/// square.
#[test]
fn cifar10() {
    let Some(png) = data("images/cifar10_test500_png.tar") else { return };
    let jpeg = data("images/cifar10_test500_jpeg.tar").unwrap();
    let (_, exact) = table_of(&png, ImagesOptions::default()).unwrap();
    let (_, lossy) = table_of(&jpeg, ImagesOptions::default()).unwrap();
    assert_eq!((exact.n_rows(), exact.row_shape()), (500, [32, 32, 3].as_slice()));
    assert_eq!(exact.labels::<u32>().unwrap(), lossy.labels::<u32>().unwrap());
    let (exact_rows, lossy_rows) = (exact.rows::<u8>(0..500).unwrap(), lossy.rows::<u8>(0..500).unwrap());
    let squares = exact_rows.iter().zip(lossy_rows).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2));
    let error = squares.sum::<f64>() / exact_rows.len() as f64;
    assert!((60.0..70.0).contains(&error), "the mean squared error is {error}");

    #[cfg(all(feature = "cifar", feature = "xz"))]
    {
        let (_folder, dest) = crate::scratch();
        let batch = data("cifar10/test_batch.bin.xz").unwrap();
        brisk_table::import(batch, &dest, &brisk_table::CifarOptions::default()).unwrap();
        let records = Table::open(&dest).unwrap();
        let mut classes = [0; 10];
        records.labels::<u8>().unwrap().iter().for_each(|&label| classes[usize::from(label)] += 1);
        assert_eq!(classes, [1_000; 10]);
        // The rows of the archive in the order of their records, by the numbers in the names of the files.
        let mut names = Vec::new();
        for entry in tar::Archive::new(fs::File::open(&png).unwrap()).entries().unwrap() {
            let entry = entry.unwrap();
            if entry.header().entry_type().is_file() {
                let path = entry.path().unwrap().into_owned();
                names.push(path.file_stem().unwrap().to_str().unwrap().parse::<usize>().unwrap());
            }
        }
        for (row, record) in names.into_iter().enumerate() {
            assert_eq!(
                exact.rows::<u8>(row..row + 1).unwrap(),
                records.rows::<u8>(record..record + 1).unwrap(),
                "record {record}"
            );
            let (label, expected) = (exact.labels::<u32>().unwrap()[row], records.labels::<u8>().unwrap()[record]);
            assert_eq!(label, u32::from(expected), "the classes of CIFAR-10 are sorted by name");
        }
    }
}

/// A tar of the folder's images, without the blocks at its end.
fn endless_tar(folder: &Path, names: &[&str]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    names.iter().for_each(|name| archive.append_path_with_name(folder.join(name), name).unwrap());
    let mut bytes = archive.into_inner().unwrap();
    bytes.truncate(bytes.len() - 1024);
    bytes
}

#[test]
fn an_archive_that_was_cut_between_files() {
    let (folder, _) = crate::scratch();
    four_images(folder.path());
    let path = folder.path().join("x.tar");
    let endless = endless_tar(folder.path(), &["a/1.png", "b/4.png"]);
    fs::write(&path, &endless).unwrap();
    let message = table_of(&path, ImagesOptions::default()).unwrap_err();
    assert!(message.contains("x.tar: cannot unpack") && message.contains("no blocks at its end"), "{message}");
    let optional = ImagesOptions { archive_end: ArchiveEnd::Optional, ..ImagesOptions::default() };
    assert_eq!(table_of(&path, optional.clone()).unwrap().0.n_rows, 2);
    // Within a file, the end is never optional.
    fs::write(&path, &endless[..endless.len() - 512]).unwrap();
    table_of(&path, optional).unwrap_err();
    // What follows the end would be lost.
    fs::write(&path, [&endless[..], &[0; 1024], &endless].concat()).unwrap();
    let message = table_of(&path, ImagesOptions::default()).unwrap_err();
    assert!(message.contains("another archive follows"), "{message}");
}

#[test]
fn a_folder_and_its_archive_have_the_same_classes() {
    let (folder, _) = crate::scratch();
    let set = folder.path().join("set");
    let names = [
        "a/1.png",
        "a/.ipynb_checkpoints/2.png",
        "b/deep/3.png",
        "@eaDir/4.png",
        "__MACOSX/a/._1.png",
        "b/Thumbs.db",
        ".DS_Store",
    ];
    for name in names {
        write(&set, &format!("{name}.png"), (2, 1), ExtendedColorType::Rgb8, &[9; 6]);
        fs::rename(set.join(format!("{name}.png")), set.join(name)).unwrap();
    }
    fs::create_dir(set.join("empty")).unwrap();
    let archive = folder.path().join("set.tar");
    let mut tar = tar::Builder::new(fs::File::create(&archive).unwrap());
    tar.append_dir_all("set", &set).unwrap();
    tar.finish().unwrap();
    for source in [&set, &archive, &folder.path().to_owned()] {
        if source == folder.path() {
            fs::remove_file(&archive).unwrap();
        }
        let (report, table) = table_of(source, ImagesOptions::default()).unwrap();
        assert_eq!((report.n_rows, table.classes()), (2, &["a", "b", "empty"].map(String::from)[..]), "{}", source.display());
        assert_eq!(table.labels::<u32>().unwrap(), [0, 1]);
        assert_eq!(report.warnings, [ImportWarning::EmptyClass { class: "empty".into() }]);
    }
    let parts = folder.path().join("parts");
    for name in ["train/a/1.png", "test/a/1.png"] {
        write(&parts, name, (2, 1), ExtendedColorType::Rgb8, &[9; 6]);
    }
    let message = table_of(&parts, ImagesOptions::default()).unwrap_err();
    assert!(message.contains("a data set, train, test, and") && message.contains("first train, then the others"), "{message}");
}

#[test]
fn one_image_is_decoded_as_in_an_import() {
    let (folder, _) = crate::scratch();
    write(folder.path(), "a/1.png", (40, 30), ExtendedColorType::Rgb8, &waves([30, 40], 3));
    let options = ImagesOptions { size: Some([6, 8]), channels: Channels::Grey, ..ImagesOptions::default() };
    let image = options.decode(folder.path().join("a/1.png")).unwrap();
    let (_, table) = table_of(folder.path(), options.clone()).unwrap();
    assert_eq!((image.shape, &image.values[..]), ([6, 8, 1], table.rows::<u8>(0..1).unwrap()));
    fs::write(folder.path().join("a/2.png"), "no image").unwrap();
    for (name, words) in [("a/2.png", "other first bytes"), ("a/3.png", "a/3.png"), ("a", "a")] {
        let error = options.decode(folder.path().join(name)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_test_set_has_the_labels_of_its_training_set() {
    let (folder, train) = crate::scratch();
    for name in ["train/a/1.png", "train/b/2.png", "train/c/3.png", "test/c/4.png", "test/b/5.png", "other/d/6.png"] {
        write(folder.path(), name, (2, 1), ExtendedColorType::Rgb8, &[9; 6]);
    }
    import(folder.path().join("train"), &train, &ImagesOptions::default()).unwrap();
    let like = ImagesOptions { like: Some(train), ..ImagesOptions::default() };
    let (_, table) = table_of(&folder.path().join("test"), like.clone()).unwrap();
    assert_eq!((table.labels::<u32>().unwrap(), table.classes().len()), (&[1, 2][..], 3));
    let message = table_of(&folder.path().join("other"), like.clone()).unwrap_err();
    assert!(message.contains("a folder `d`") && message.contains("[\"a\", \"b\", \"c\"]"), "{message}");
    let message = table_of(&folder.path().join("test"), ImagesOptions { size: Some([4, 4]), ..like }).unwrap_err();
    assert!(message.contains("1 × 2 pixels of 3 channels"), "{message}");
}

#[test]
fn photos_are_turned_as_their_data_says() {
    let (folder, _) = crate::scratch();
    // Two halves, the left one white.
    let pixels: Vec<u8> = (0..16 * 8).map(|i| if i % 16 < 8 { 255 } else { 0 }).collect();
    write(folder.path(), "a/1.jpg", (16, 8), ExtendedColorType::L8, &pixels);
    let path = folder.path().join("a/1.jpg");
    let plain = fs::read(&path).unwrap();
    // To be turned to the right by a quarter: the white half is then above.
    let tiff: &[u8] = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let exif = [b"\xff\xe1\0\x22Exif\0\0", tiff].concat();
    assert_eq!(exif.len(), 0x22 + 2);
    fs::write(&path, [&plain[..2], &exif, &plain[2..]].concat()).unwrap();
    let (_, table) = table_of(folder.path(), ImagesOptions::default()).unwrap();
    assert_eq!(table.row_shape(), [16, 8, 1]);
    let rows = table.rows::<u8>(0..1).unwrap();
    assert!(rows[..64].iter().all(|&value| value > 128) && rows[64..].iter().all(|&value| value < 128), "{rows:?}");
    let stored = ImagesOptions { orientation: Orientation::AsStored, ..ImagesOptions::default() };
    assert_eq!(table_of(folder.path(), stored.clone()).unwrap().1.row_shape(), [8, 16, 1]);
    // A table made like another has its orientation.
    let (_folder, train) = crate::scratch();
    import(folder.path(), &train, &stored).unwrap();
    let like = |orientation| ImagesOptions { orientation, like: Some(train.clone()), ..ImagesOptions::default() };
    let stored_rows = Table::open(&train).unwrap().rows::<u8>(0..1).unwrap().to_vec();
    for orientation in [Orientation::Upright, Orientation::AsStored] {
        let (_, table) = table_of(folder.path(), like(orientation)).unwrap();
        assert_eq!(table.rows::<u8>(0..1).unwrap(), stored_rows);
    }
    let explicit = vec![ImportSetting::Orientation];
    let upright = ImportOptions { images: like(Orientation::Upright), explicit, ..ImportOptions::default() };
    let (_folder, dest) = crate::scratch();
    let refuse = |message: String| assert!(message.contains("upright") && message.contains("as they are stored"), "{message}");
    refuse(import(folder.path(), dest, &upright).unwrap_err().to_string());
    import(folder.path(), &train, &ImagesOptions::default()).unwrap();
    refuse(table_of(folder.path(), like(Orientation::AsStored)).unwrap_err());
    // The size is that of the picture.
    let sized = ImagesOptions { size: Some([16, 8]), ..ImagesOptions::default() };
    assert_eq!(table_of(folder.path(), sized).unwrap().1.rows::<u8>(0..1).unwrap(), rows);
}

#[cfg(unix)]
#[test]
fn links_are_followed_but_not_in_circles() {
    use std::os::unix::fs::symlink;

    let (folder, _) = crate::scratch();
    write(folder.path(), "elsewhere/x.png", (2, 1), ExtendedColorType::Rgb8, &[9; 6]);
    let set = folder.path().join("set");
    fs::create_dir_all(set.join("b")).unwrap();
    symlink("../elsewhere", set.join("a")).unwrap();
    symlink("../../elsewhere/x.png", set.join("b/1.png")).unwrap();
    let (report, table) = table_of(&set, ImagesOptions::default()).unwrap();
    assert_eq!((report.n_rows, table.classes()), (2, &["a", "b"].map(String::from)[..]));
    // A link to nowhere is a file that cannot be read.
    symlink("gone.png", set.join("b/0.png")).unwrap();
    symlink("gone", set.join("c")).unwrap();
    let message = table_of(&set, ImagesOptions::default()).unwrap_err();
    assert!(message.contains("b/0.png"), "{message}");
    let (report, _) = table_of(&set, SKIP).unwrap();
    assert_eq!((report.n_rows, report.n_skipped, &report.files[..]), (2, 2, &["a/x.png", "b/1.png"].map(String::from)[..]));
    fs::remove_file(set.join("b/0.png")).unwrap();
    fs::remove_file(set.join("c")).unwrap();
    // Two links to a folder above would make 2³² paths of 32 folders.
    symlink("..", set.join("b/up")).unwrap();
    symlink("..", set.join("b/again")).unwrap();
    let message = table_of(&set, ImagesOptions::default()).unwrap_err();
    assert!(message.contains("a link to a folder that contains it"), "{message}");
}
