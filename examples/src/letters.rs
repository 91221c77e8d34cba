//! Drawn letters, to train a first network on: a table of images of 28 x 28 bytes, like those of EMNIST.

use std::path::Path;

use anyhow::{Context, Result};
use brisk_nn::Philox;
use brisk_table::{DType, Schema, Table, TableWriter};

/// How many letters there are.
pub const N_CLASSES: usize = 26;

/// Pixels along each side of an image.
pub const SIDE: usize = 28;

/// Opens the table at `path`, which is drawn first if it does not exist: `n_rows` letters, each with a different position, size
/// and slant, with noise.
///
/// # Errors
/// If the table cannot be written or read.
pub fn table(path: &Path, n_rows: usize) -> Result<Table> {
    if !path.exists() {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create the folder", folder.display()))?;
        }
        let schema = Schema { dtype: DType::U8, label_dtype: DType::U8, ..Schema::shaped(&[SIDE, SIDE]) };
        let mut writer = TableWriter::create(path, schema)?;
        for row in 0..n_rows {
            let class = row % N_CLASSES;
            writer.push(&drawn(class, row as u32), &[class as u8])?;
        }
        writer.finish()?;
    }
    Ok(Table::open(path)?)
}

/// The image of a letter, a pure function of its number.
fn drawn(class: usize, row: u32) -> Vec<u8> {
    let random = Philox::new(u64::from(row));
    let [size, x, y, slant] = [0, 1, 2, 3].map(|i| random.uniform(i, 0));
    let size = 2.0 + 1.4 * size;
    let (left, top) = ((SIDE as f32 - 5.0 * size) * (0.3 + 0.4 * x), (SIDE as f32 - 7.0 * size) * (0.3 + 0.4 * y));
    let slant = 0.5 * (slant - 0.5);
    let pixel = |at: usize| {
        let (row, col) = ((at / SIDE) as f32, (at % SIDE) as f32);
        let v = (row - top) / size;
        let u = (col - left) / size + slant * (v - 3.5);
        let is_ink = (0.0..7.0).contains(&v) && (0.0..5.0).contains(&u) && GLYPHS[class][v as usize] >> (4 - u as u32) & 1 == 1;
        let noise = 90.0 * random.uniform(8 + at as u32, 0);
        (if is_ink { 165.0 } else { 0.0 } + noise) as u8
    };
    (0..SIDE * SIDE).map(pixel).collect()
}

/// The letters A to Z, seven rows of five bits each, the leftmost pixel in the highest bit.
pub const GLYPHS: [[u8; 7]; N_CLASSES] = [
    [0b01110, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001], // A
    [0b11110, 0b10001, 0b10001, 0b11110, 0b10001, 0b10001, 0b11110], // B
    [0b01110, 0b10001, 0b10000, 0b10000, 0b10000, 0b10001, 0b01110], // C
    [0b11110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b11110], // D
    [0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b11111], // E
    [0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b10000], // F
    [0b01110, 0b10001, 0b10000, 0b10111, 0b10001, 0b10001, 0b01110], // G
    [0b10001, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001], // H
    [0b01110, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110], // I
    [0b00111, 0b00010, 0b00010, 0b00010, 0b00010, 0b10010, 0b01100], // J
    [0b10001, 0b10010, 0b10100, 0b11000, 0b10100, 0b10010, 0b10001], // K
    [0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b11111], // L
    [0b10001, 0b11011, 0b10101, 0b10101, 0b10001, 0b10001, 0b10001], // M
    [0b10001, 0b11001, 0b10101, 0b10011, 0b10001, 0b10001, 0b10001], // N
    [0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110], // O
    [0b11110, 0b10001, 0b10001, 0b11110, 0b10000, 0b10000, 0b10000], // P
    [0b01110, 0b10001, 0b10001, 0b10001, 0b10101, 0b10010, 0b01101], // Q
    [0b11110, 0b10001, 0b10001, 0b11110, 0b10100, 0b10010, 0b10001], // R
    [0b01111, 0b10000, 0b10000, 0b01110, 0b00001, 0b00001, 0b11110], // S
    [0b11111, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100], // T
    [0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110], // U
    [0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01010, 0b00100], // V
    [0b10001, 0b10001, 0b10001, 0b10101, 0b10101, 0b11011, 0b10001], // W
    [0b10001, 0b10001, 0b01010, 0b00100, 0b01010, 0b10001, 0b10001], // X
    [0b10001, 0b10001, 0b01010, 0b00100, 0b00100, 0b00100, 0b00100], // Y
    [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b10000, 0b11111], // Z
];
