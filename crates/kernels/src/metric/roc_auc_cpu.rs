use rayon::prelude::*;

const SIGN: u32 = 1 << 31;

pub(crate) fn run(scores: &[f32], labels: &[f32], weights: &[f32]) -> f32 {
    let mut pairs: Vec<u64> = scores.par_iter().zip(labels).zip(weights).map(|((&x, &t), &w)| pair(x, t, w)).collect();
    // By weight where scores are equal, so that sums are taken in one order.
    pairs.par_sort_unstable();
    let mut below = [0.0_f64; 2];
    let mut area = 0.0;
    for tied in pairs.chunk_by(|a, b| a >> 32 == b >> 32) {
        let mut own = [0.0_f64; 2];
        for pair in tied {
            let labelled = *pair as u32;
            own[usize::from(labelled >= SIGN)] += f64::from(f32::from_bits(labelled & !SIGN));
        }
        area += own[1] * (below[0] + 0.5 * own[0]);
        below = [below[0] + own[0], below[1] + own[1]];
    }
    (area / (below[0] * below[1])) as f32
}

/// Bits that are ordered as the scores are, zeros of both signs alike, in front of the weight with the label for its sign.
fn pair(score: f32, label: f32, weight: f32) -> u64 {
    let bits = (score + 0.0).to_bits();
    let key = if bits < SIGN { bits | SIGN } else { !bits };
    let weight = if score.is_nan() && weight != 0.0 { f32::NAN } else { weight };
    let labelled = weight.to_bits() & !SIGN | if label > 0.0 { SIGN } else { 0 };
    u64::from(key) << 32 | u64::from(labelled)
}
