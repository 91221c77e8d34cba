//! Folders, archives and special files.

use std::fs;

use anyhow::ensure;
use brisk_tabular::TabularModel;

use super::tables::{IMPORT, TRAIN, part, text};
use super::{Content, Row, computed, either, refused, refused_or_said, row, said};

/// An image of 4 x 4 red pixels.
#[rustfmt::skip]
const PNG: [u8; 73] = [
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x04, 0x08,
    0x02, 0x00, 0x00, 0x00, 0x26, 0x93, 0x09, 0x29, 0x00, 0x00, 0x00, 0x10, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x47, 0x0c,
    0xc4, 0x71, 0x00, 0xae, 0x93, 0x0f, 0xf1, 0x38, 0x5e, 0x8c, 0x11, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

pub(super) fn png() -> Vec<u8> {
    PNG.to_vec()
}

/// A tar of files, without the blocks of zeros at its end.
fn members(files: &[&str]) -> Vec<u8> {
    let mut tar = Vec::new();
    for name in files {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(format!("{:011o}", PNG.len()).as_bytes());
        header[136..147].copy_from_slice(b"00000000000");
        header[148..156].fill(b' ');
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend(header);
        tar.extend(PNG);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar
}

pub(super) fn tar(files: &[&str]) -> Vec<u8> {
    let mut tar = members(files);
    tar.resize(tar.len() + 1024, 0);
    tar
}

/// An array of f32, `[n, 3]`, and 0 everywhere.
pub(super) fn npy(n: usize) -> Vec<u8> {
    npy_of("<f4", n, |_| vec![0; 4])
}

/// An array, `[n, 3]`.
fn npy_of(dtype: &str, n: usize, value: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    npy_in_order(dtype, "False", n, value)
}

/// The same, whose values are column by column if `fortran_order` is `True`.
pub(super) fn npy_in_order(dtype: &str, fortran_order: &str, n: usize, value: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': {fortran_order}, 'shape': ({n}, 3), }}");
    header += &" ".repeat(117 - header.len());
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend((0..3 * n).flat_map(value));
    bytes
}

const IMAGES: &str = "import images out.safetensors --json out.json";
const ARCHIVE: &str = "import images.tar out.safetensors --json out.json";

/// The same images as a folder and as an archive.
fn images(name: &str, files: &[&str], row_of: impl Fn(&str, &str) -> Row) -> [Row; 2] {
    let folder = files.iter().fold(row_of(name, IMAGES), |row, file| row.file(&format!("images/{file}"), png()));
    [folder, row_of(&format!("{name}, as an archive"), ARCHIVE).file("images.tar", tar(files))]
}

pub(super) fn rows() -> Vec<Row> {
    const TWO: [&str; 4] = ["a/1.png", "a/2.png", "b/1.png", "b/2.png"];
    let mut rows = Vec::new();
    for hidden in [
        ".ipynb_checkpoints/1.png",
        "@eaDir/1.png",
        "__MACOSX/a/1.png",
        ".git/1.png",
        "Thumbs.db",
        "a/Thumbs.db",
        ".DS_Store",
        "a/._1.png",
    ] {
        let files = [&TWO[..], &[hidden]].concat();
        rows.extend(images(&format!("images beside {hidden}"), &files, |name, line| {
            row(
                name,
                &[line],
                computed(|found| {
                    found.classes(&["a", "b"])?;
                    found.labels(&[0.0, 0.0, 1.0, 1.0])
                }),
            )
        }));
    }
    let pair = ["train/a/1.png", "train/b/1.png", "test/a/1.png", "test/b/1.png"];
    rows.extend(images("images in a train and a test folder", &pair, |name, line| {
        row(name, &[line], either(&["train", "test"], |found| found.classes(&["a", "b"])))
    }));
    rows.extend(images("a class without images", &["a/1.png", "b/1.png", "empty/notes.txt"], |name, line| {
        row(name, &[line], refused_or_said(&["empty"], &["empty"]))
    }));
    rows.push(row("an archive without its end", &[ARCHIVE], refused(&["end|cut|truncated"])).file("images.tar", members(&TWO)));
    rows.push(
        row("an archive cut between two members", &[ARCHIVE], refused(&["end|cut|truncated"]))
            .file("images.tar", members(&TWO[..3])),
    );
    for (what, name) in [("a pipe", "a/3.png"), ("a pipe as a class", "c")] {
        let files = TWO.iter().fold(
            row(format!("images beside {what}"), &[IMAGES], refused_or_said(&[name], &["out.safetensors"])),
            |row, file| row.file(&format!("images/{file}"), png()),
        );
        rows.push(files.content(&format!("images/{name}"), Content::Fifo));
    }
    let empty = TWO.iter().fold(
        row("images beside a class that is an empty folder", &[IMAGES], refused_or_said(&["c"], &["`c`|images/c|class c"])),
        |row, file| row.file(&format!("images/{file}"), png()),
    );
    rows.push(empty.content("images/c", Content::Folder));
    for device in ["/dev/zero", "/dev/random", "/dev/tty"] {
        let files = TWO.iter().fold(
            row(format!("images beside a link to {device}"), &[IMAGES], refused_or_said(&["a/3.png"], &["out.safetensors"])),
            |row, file| row.file(&format!("images/{file}"), png()),
        );
        rows.push(files.content("images/a/3.png", Content::Link(device)));
    }
    rows.push(
        row("rows from a pipe that nothing writes to", &[IMPORT], refused(&["rows.csv"])).content("rows.csv", Content::Fifo),
    );
    rows.push(
        row("a table that is a link to /dev/zero", &[IMPORT], refused(&["rows.csv"]))
            .content("rows.csv", Content::Link("/dev/zero")),
    );
    rows.push(
        row(
            "scratch files of killed runs in the model folder",
            &[TRAIN],
            computed(|found| {
                let left = crate::files::leftovers(&found.dir.join("model"));
                ensure!(left.is_empty(), "the model folder has {left:?}");
                Ok(())
            }),
        )
        .file("rows.csv", text("x,y", 20_000, |i| format!("{:.3},{}", part(i, 0), i % 2)))
        .killed(12),
    );
    rows.push(
        row("a bit of a model's folder that flips", &[TRAIN], said(&["rows"]))
            .file("rows.csv", text("x,z,y", 200, |i| format!("{:.3},{:.3},{}", part(i, 0), part(i, 1), ["no", "yes"][i % 2])))
            .then(|dir| {
                let model = dir.join("model");
                TabularModel::load(&model)?;
                for name in ["model.json", "parameters.safetensors"] {
                    let whole = fs::read(model.join(name))?;
                    let n_bits = 8 * whole.len();
                    for bit in (0..n_bits).step_by(n_bits / 150 + 1) {
                        let mut damaged = whole.clone();
                        damaged[bit / 8] ^= 1 << (bit % 8);
                        fs::write(model.join(name), damaged)?;
                        ensure!(TabularModel::load(&model).is_err(), "{name}, bit {bit}: it is loaded all the same");
                    }
                    fs::write(model.join(name), whole)?;
                }
                Ok(())
            }),
    );
    rows.push(
        row("rows of a file of tensors that is no table", &["inspect tensors.safetensors --rows 3"], refused(&["--rows"])).file(
            "tensors.safetensors",
            b"<\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}      \0\0\0\0".to_vec(),
        ),
    );
    rows.push(
        row(
            "an array of f64 that f32 rounds",
            &["import rows.npy out.safetensors --labels 0"],
            said(&["warning", "rows.npy|rows"]),
        )
        .file("rows.npy", npy_of("<f8", 20, |i| (1_700_000_000.0 + i as f64).to_le_bytes().to_vec())),
    );
    rows.push(
        row(
            "an array of i64 that f32 rounds",
            &["import rows.npy out.safetensors --labels 0"],
            said(&["warning", "rows.npy|rows"]),
        )
        .file("rows.npy", npy_of("<i8", 20, |i| (1_700_000_000 + i as i64).to_le_bytes().to_vec())),
    );
    for (what, from, to) in [
        ("two columns of one name", "\"name\": \"z\"", "\"name\": \"x\""),
        ("a standard deviation that has changed", "\"std\": 0.", "\"std\": 1."),
        ("a class of another name", "\"yes\"", "\"yet\""),
        ("two classes of one name", "\"yes\"", "\"no\""),
        ("layers of 2^20", "\"hidden\": [\n      4\n    ]", "\"hidden\": [1048576, 1048576, 1048576]"),
    ] {
        let line = "predict model rows.csv --out out.csv";
        rows.push(
            row(format!("a model file with {what}"), &[TRAIN, line], refused(&["model.json"]))
                .file(
                    "rows.csv",
                    text("x,z,y", 200, |i| format!("{:.3},{:.3},{}", part(i, 0), part(i, 1), ["no", "yes"][i * 7 % 5 / 3])),
                )
                .edit("model/model.json", from, to),
        );
    }
    rows
}
