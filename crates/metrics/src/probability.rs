//! Probabilities of logits, in `f64`.

/// `1 / (1 + e^-x)`.
pub(crate) fn sigmoid(logit: f32) -> f64 {
    1.0 / (1.0 + (-f64::from(logit)).exp())
}

/// `ln (1 + e^x)`, without overflow.
pub(crate) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The softmax of a row's logits. Equal logits have equal probabilities, infinite ones too.
pub(crate) fn softmax(logits: &[f32]) -> impl Iterator<Item = f64> + Clone {
    let max = maximum(logits);
    let sum: f64 = logits.iter().map(|&logit| (-below(max, logit)).exp()).sum();
    logits.iter().map(move |&logit| (-below(max, logit)).exp() / sum)
}

/// `-ln softmax(logits)[class]`.
pub(crate) fn cross_entropy(logits: &[f32], class: usize) -> f64 {
    let max = maximum(logits);
    let sum: f64 = logits.iter().map(|&logit| (-below(max, logit)).exp()).sum();
    sum.ln() + below(max, logits[class])
}

/// The class of the largest logit; of equal ones, the first.
pub(crate) fn arg_max(logits: &[f32]) -> usize {
    let mut best = 0;
    for (class, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = class;
        }
    }
    best
}

fn maximum(logits: &[f32]) -> f32 {
    logits.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// `max - logit`; 0 where both are the same infinity.
fn below(max: f32, logit: f32) -> f64 {
    if logit == max { 0.0 } else { f64::from(max) - f64::from(logit) }
}
