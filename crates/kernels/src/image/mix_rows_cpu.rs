use super::mix_rows::share_of_pixel;
use crate::image::mix_rows::MixRows;
use crate::random::philox::Philox;
use crate::run_state::EPOCH;
use crate::sizes::in_u32;

/// The results of the kernel.
pub(crate) struct Mixed<'a> {
    pub(crate) partners: &'a mut [u32],
    pub(crate) shares: &'a mut [f32],
    pub(crate) lines: &'a mut [f32],
    pub(crate) columns: &'a mut [f32],
    /// Lines of a row, and columns of a line.
    pub(crate) lens: [usize; 2],
}

pub(crate) fn run(kernel: &MixRows, rows: &[u32], order: &[u32], quantiles: &[u32], mixed: Mixed<'_>) {
    let philox = Philox::new(kernel.seed);
    let Mixed { partners, shares, lines, columns, lens: [n_lines, n_columns] } = mixed;
    let lines = lines.chunks_exact_mut(n_lines).zip(columns.chunks_exact_mut(n_columns));
    for (((&row, partner), share), (lines, columns)) in rows.iter().zip(partners).zip(shares).zip(lines) {
        let draws = philox.block([row, order[EPOCH], 3, 0]);
        *partner = high(draws[0], order[0]);
        let cell = (draws[1] >> 22) as usize;
        let low = quantiles[cell];
        let quantile = low.wrapping_add(high(quantiles[cell + 1].wrapping_sub(low), draws[1] << 10));
        let Some([height, width, n_channels]) = kernel.cut else {
            *share = (quantile >> 8) as f32 / 16_777_216.0;
            lines[0] = *share;
            columns[0] = 1.0;
            continue;
        };
        let [[top, bottom], [left, right]] = [(draws[2], height), (draws[3], width)].map(|(word, len)| {
            let len = in_u32(len);
            let (centre, reach) = (high(word, len), high(quantile, len));
            [centre - reach.min(centre), len.min(centre + reach)]
        });
        for (line, share) in (0..).zip(lines) {
            *share = f32::from(u8::from((top..bottom).contains(&line)));
        }
        for (column, shares) in (0..).zip(columns.chunks_exact_mut(n_channels)) {
            shares.fill(f32::from(u8::from((left..right).contains(&column))));
        }
        #[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
        let area = ((bottom - top) * (right - left)) as f32;
        *share = area * share_of_pixel(height, width);
    }
}

/// The high word of a product: for a random word, a number below `n`.
fn high(word: u32, n: u32) -> u32 {
    ((u64::from(word) * u64::from(n)) >> 32) as u32
}
