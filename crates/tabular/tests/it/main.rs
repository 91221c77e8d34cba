//! Tests of the crate's public interface, one module per file.

mod categories;
mod dates;
mod encoding;
mod labels;
mod linear;
mod numbers;
mod predicted_rows;
mod quantiles;
mod segments;
mod several;
mod summaries;
mod time;

/// Numbers from -1 to 1 that look random.
fn noise(row: usize, col: usize) -> f32 {
    let z = (row as u64 * 64 + col as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ z >> 31) >> 40) as f32 / (1 << 23) as f32 - 1.0
}
