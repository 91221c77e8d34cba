use crate::{MseLoss, Reduction};

pub(crate) fn loss(kernel: &MseLoss, x: &[f32], target: &[f32], weight: &[f32], loss: &mut [f32]) {
    let (mut sum, mut weights) = (0.0_f64, 0.0_f64);
    let rows = x.chunks_exact(kernel.n_cols).zip(target.chunks_exact(kernel.n_cols));
    for ((x, target), &w) in rows.zip(weight) {
        let squares: f64 = x.iter().zip(target).map(|(x, t)| f64::from(x - t) * f64::from(x - t)).sum();
        sum += f64::from(w) * squares;
        weights += f64::from(w) * kernel.n_cols as f64;
    }
    let divisor = match kernel.reduction {
        Reduction::Mean => weights,
        Reduction::Sum => 1.0,
    };
    loss[0] = (sum / divisor) as f32;
    loss[1] = divisor as f32;
}

pub(crate) fn grad(kernel: &MseLoss, dloss: f32, x: &[f32], target: &[f32], weight: &[f32], loss: &[f32], dx: &mut [f32]) {
    let scale = 2.0 * dloss / loss[1];
    let rows = x.chunks_exact(kernel.n_cols).zip(target.chunks_exact(kernel.n_cols));
    for ((dx, (x, target)), w) in dx.chunks_exact_mut(kernel.n_cols).zip(rows).zip(weight) {
        for ((dx, x), t) in dx.iter_mut().zip(x).zip(target) {
            *dx = scale * w * (x - t);
        }
    }
}
